# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Chooses tokens from logits, and says with which probability.

A log-probability is that of the distribution the token was drawn from: after temperature, top-k and top-p ("processed"
in vLLM's words). At temperature 0 nothing is drawn; it is then the model's own, at temperature 1.

Every request draws from its own random stream, so that its answer does not depend on what runs beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one request samples. `top_k` 0 and `top_p` 1.0 keep every token; `top_logprobs` is how many to report."""

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    include_stop_text: bool = False
    ignore_end: bool = False
    min_tokens: int = 0
    top_logprobs: int = 0
    prompt_logprobs: int | None = None

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A token with its log-probability; `top` are the likeliest tokens and `rank` counts from 1, if asked for."""

    token: int
    logprob: float
    rank: int | None = None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)
class Draw:
    """What the sampler needs of one row. `banned` tokens can't be chosen now."""

    params: SamplingParams
    random: np.random.Generator
    banned: tuple[int, ...] = ()


def sample(logits_BV: Tensor, draws: Sequence[Draw]) -> list[Choice]:
    """Choose one token per row."""
    logprobs_BV = torch.log_softmax(_process(logits_BV, draws), -1)
    tokens = _choose(logprobs_BV, draws)
    chosen = logprobs_BV.gather(-1, tokens[:, None])[:, 0].tolist()
    if not any(draw.params.top_logprobs for draw in draws):
        return [Choice(token, logprob) for token, logprob in zip(tokens.tolist(), chosen, strict=True)]
    reports = [draw.params.top_logprobs for draw in draws]
    return describe(logprobs_BV, tokens, reports)


def describe(logprobs_NV: Tensor, tokens_N: Tensor, tops_N: Sequence[int]) -> list[Choice]:
    """Given tokens with their log-probability, rank, and as many of the likeliest tokens as `tops_N` says."""
    chosen_N = logprobs_NV.gather(-1, tokens_N[:, None])
    ranks = ((logprobs_NV > chosen_N).sum(-1) + 1).tolist()
    values, indices = logprobs_NV.topk(max(max(tops_N), 1), -1)
    rows = zip(
        tokens_N.tolist(), chosen_N[:, 0].tolist(), ranks, indices.tolist(), values.tolist(), tops_N, strict=True
    )
    return [
        Choice(token, logprob, rank, tuple(zip(ids[:count], tops[:count], strict=True)))
        for token, logprob, rank, ids, tops, count in rows
    ]


def _process(logits_BV: Tensor, draws: Sequence[Draw]) -> Tensor:
    if any(draw.params.temperature not in (0.0, 1.0) for draw in draws):
        heat = [draw.params.temperature or 1.0 for draw in draws]
        logits_BV = logits_BV / torch.tensor(heat, device=logits_BV.device)[:, None]
    for row, draw in enumerate(draws):
        if draw.banned:
            logits_BV[row, list(draw.banned)] = -torch.inf
        if not draw.params.greedy and (draw.params.top_k or draw.params.top_p < 1.0):
            logits_BV[row] = truncate(logits_BV[row], draw.params.top_k, draw.params.top_p)
    return logits_BV


def truncate(logits_V: Tensor, top_k: int, top_p: float) -> Tensor:
    """Rule out all but the `top_k` likeliest tokens, then all but the fewest whose probability reaches `top_p`."""
    values, order = logits_V.sort(descending=True, stable=True)
    if top_k:
        values[top_k:] = -torch.inf
    probabilities = values.softmax(-1)
    values[probabilities.cumsum(-1) - probabilities >= top_p] = -torch.inf
    return torch.empty_like(logits_V).scatter_(0, order, values)


def _choose(logprobs_BV: Tensor, draws: Sequence[Draw]) -> Tensor:
    if all(draw.params.greedy for draw in draws):
        return logprobs_BV.argmax(-1)
    # Inverse of the cumulative distribution: the first token whose cumulative probability exceeds a uniform draw.
    # In fp64 and with draws of 32 bits the product stays below the total, so that an impossible token is never hit.
    cumulative_BV = logprobs_BV.exp().cumsum(-1, dtype=torch.float64)
    uniform = [draw.random.integers(1 << 32) / (1 << 32) for draw in draws]
    levels = torch.tensor(uniform, dtype=torch.float64, device=logprobs_BV.device)[:, None] * cumulative_BV[:, -1:]
    tokens = torch.searchsorted(cumulative_BV, levels, right=True)[:, 0].clamp_(max=logprobs_BV.shape[-1] - 1)
    greedy = [draw.params.greedy for draw in draws]
    if any(greedy):
        tokens = torch.where(torch.tensor(greedy, device=tokens.device), logprobs_BV.argmax(-1), tokens)
    return tokens
