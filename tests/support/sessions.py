# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Synthetic sessions and a random policy, for tests of what comes after a rollout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from nemo_gym_polar.forest.trace import Trace, TraceKind
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus
from nemo_gym_polar.tokens import VersionSpan

VOCAB = 64


def make_policy(directory: Path, *, layers: int = 2, window: int | None = 7, width: int = 32, seed: int = 0) -> Path:
    """A model directory with random weights that are large enough to make every token matter."""
    kind = "full_attention" if window is None else "sliding_attention"
    config = Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        use_sliding_window=window is not None,
        sliding_window=window,
        max_window_layers=0,
        layer_types=[kind] * layers,
        initializer_range=0.2,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        Qwen3ForCausalLM(config).save_pretrained(directory)
    (directory / "tokenizer.json").write_text("{}")
    return directory


def make_trace(
    layout: Sequence[tuple[int, bool]],
    *,
    seed: int = 0,
    session_id: str = "s",
    index: int = 0,
    kind: TraceKind = "main",
    weight: float = 1.0,
    reward: float | None = None,
) -> Trace:
    """Random tokens: `layout` lists (length, trained) stretches. Log-probabilities are those of a random policy."""
    generator = np.random.default_rng(seed)
    mask = np.concatenate([np.full(length, trained) for length, trained in layout])
    logprobs = np.where(mask, -np.abs(generator.normal(2.0, 0.5, len(mask))), 0.0).astype(np.float32)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]]))).reshape(-1, 2)
    return Trace(
        session_id=session_id,
        index=index,
        kind=kind,
        token_ids=generator.integers(2, VOCAB, len(mask)).astype(np.int32),
        loss_mask=mask,
        logprobs=logprobs,
        turns=tuple(range(len(edges))),
        versions=tuple(VersionSpan("0", int(start), int(end)) for start, end in edges),
        reward=reward,
        weight=weight,
    )


def make_session(
    reward: float,
    traces: Sequence[Trace] = (),
    *,
    sample: int = 0,
    task: str = "t",
    status: SessionStatus = SessionStatus.COMPLETED,
    dropped: dict[str, int] | None = None,
) -> SessionResult:
    return SessionResult(
        session_id=f"{task}-{sample}",
        task_id=task,
        sample=sample,
        status=status,
        reward=reward,
        traces=list(traces),
        dropped=dropped or {},
    )


def make_group(rewards: Sequence[float], *, seed: int = 0, task: str = "t", prompt: int = 9) -> list[SessionResult]:
    """Sessions of one trace and two turns each, all with the same first prompt."""
    first = make_trace([(prompt, False)], seed=seed).token_ids
    sessions = []
    for sample, reward in enumerate(rewards):
        trace = make_trace([(prompt, False), (4, True), (5, False), (3, True)], seed=1000 * seed + sample)
        trace.token_ids[:prompt] = first
        sessions.append(make_session(reward, [trace], sample=sample, task=task))
    return sessions
