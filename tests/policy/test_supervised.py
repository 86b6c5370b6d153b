# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.lessons import Lesson, Lessons
from nemo_gym_polar.policy.supervised import learn, rate
from nemo_gym_polar.policy.synthetic import mixed
from tests.support.policies import small_tokenizer, wild_policy

TOKENIZER = small_tokenizer()
STEPS = 12


def batches(seed: int = 0) -> Iterator[list[Lesson]]:
    lessons = Lessons(TOKENIZER, reach=22, seed=seed)
    for _ in range(STEPS):
        yield lessons.batch(mixed, 6, noise=True)


def taught() -> tuple[Qwen3ForCausalLM, list[float]]:
    model, losses = wild_policy(TOKENIZER, seed=0), []
    learn(model, batches(), steps=STEPS, lr=1e-2, report=lambda _, __, loss: losses.append(loss))
    return model, losses


def test_it_learns() -> None:
    _, losses = taught()
    assert len(losses) == STEPS
    assert losses[-1] < losses[0] - 1.0


def test_it_is_deterministic() -> None:
    (first, losses), (second, same_losses) = taught(), taught()
    assert losses == same_losses
    weights = second.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in first.state_dict().items())


def test_the_loss_is_the_mean_per_learned_token_whatever_shares_a_pass() -> None:
    model = wild_policy(TOKENIZER, seed=0)
    lessons = next(batches())
    logits, targets = [], []
    with torch.no_grad():
        for lesson in lessons:
            ids, learned = torch.from_numpy(lesson.ids_T), torch.from_numpy(lesson.learned_T)
            logits.append(model(input_ids=ids[None]).logits[0, :-1][learned[1:]])
            targets.append(ids[1:][learned[1:]])
    expected = cross_entropy(torch.cat(logits), torch.cat(targets)).item()
    losses: list[float] = []
    learn(model, [lessons], steps=1, lr=1e-3, report=lambda _, __, loss: losses.append(loss))
    assert losses == [pytest.approx(expected, rel=1e-4)]


def test_the_rate_rises_then_falls_and_never_ends() -> None:
    rates = [rate(step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(1 / 20)
    assert rates[:20] == sorted(rates[:20])
    assert rates[20:] == sorted(rates[20:], reverse=True)
    assert min(rates[20:]) == 0.05
