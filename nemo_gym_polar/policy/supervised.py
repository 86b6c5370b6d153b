# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Supervised learning of what the assistant says in chats."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch.nn.functional import cross_entropy
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.lessons import Lesson, padded

Report = Callable[[int, int, float], None]
"""Called with the number of steps done, the number of all, and the loss in nats per token."""


def learn(
    model: Qwen3ForCausalLM, batches: Iterable[list[Lesson]], *, steps: int, lr: float, report: Report | None = None
) -> None:
    """One AdamW step on each of `steps` batches, at a rate that rises and then falls."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
    for step, lessons in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = _accumulate(model, lessons)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if report is not None:
            report(step, steps, loss)


def rate(step: int, steps: int, *, warmup: int = 20, floor: float = 0.05) -> float:
    """The share of the learning rate at `step` (from 0): a linear rise, then a linear fall."""
    return min(1.0, (step + 1) / warmup) * max(floor, 1 - step / steps)


def _accumulate(model: Qwen3ForCausalLM, lessons: list[Lesson], parts: int = 3) -> float:
    """Gradients of the mean loss per learned token. Lessons of like length share a forward pass."""
    learned = sum(int(lesson.learned_T.sum()) for lesson in lessons)
    size = -(-len(lessons) // parts)
    total = 0.0
    for start in range(0, len(lessons), size):
        ids, wanted = padded(lessons[start : start + size])
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        chosen = wanted[:, 1:]
        loss = cross_entropy(model.lm_head(hidden[chosen]), ids[:, 1:][chosen], reduction="sum") / learned
        torch.autograd.backward(loss)
        total += loss.item()
    return total
