# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How NeMo RL reads a `/run` result, written again from its contract, as plain as it can be.

It shares no code with `nemo_gym_polar.environment.responses`, so that a mistake there can't hide here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


class BrokenContractError(AssertionError):
    """NeMo RL would refuse, or silently mistrain, this result."""


@dataclass
class Row:
    """The training row: every token in order, whether it is trained on, and its log-probability (0 if not)."""

    tokens: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    first_prompt: tuple[int, ...] = ()
    turns: int = 0


def walk(result: dict[str, Any]) -> Row:
    _require("input" in result["responses_create_params"], "responses_create_params.input is missing")
    _require(isinstance(result["reward"], float), f"reward is {result['reward']!r}, not a float")
    row = Row()
    for position, item in enumerate(result["response"]["output"]):
        if item.get("generation_token_ids"):
            _take(row, item, position)
    _require(row.turns > 0, "no generation data")
    return row


def _take(row: Row, item: dict[str, Any], position: int) -> None:
    prompt, sampled = item["prompt_token_ids"], item["generation_token_ids"]
    logprobs = item["generation_log_probs"]
    _require(prompt[: len(row.tokens)] == row.tokens, f"Non-contiguous messages found at item {position}")
    new = prompt[len(row.tokens) :]
    _require(bool(new), f"item {position}: nothing stands between two sampled stretches")
    _require(len(logprobs) == len(sampled), f"item {position}: {len(logprobs)} logprobs, {len(sampled)} tokens")
    _require(all(math.isfinite(value) for value in logprobs), f"item {position}: a logprob is not finite")
    _require(all(type(token) is int and token >= 0 for token in prompt + sampled), f"item {position}: not token ids")
    row.first_prompt = row.first_prompt or tuple(new)
    row.tokens += new + sampled
    row.mask += [False] * len(new) + [True] * len(sampled)
    row.logprobs += [0.0] * len(new) + logprobs
    row.turns += 1


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenContractError(otherwise)
