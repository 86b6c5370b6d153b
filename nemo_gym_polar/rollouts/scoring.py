# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Rewards onto traces, and the rule for sessions that did not end well."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from nemo_gym_polar.evaluators.base import EvaluatorError, Score
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.settings import PartialRule

MASKED = "partial_run"


def check_score(score: Score, traces: Sequence[Trace]) -> Score:
    """Raises `EvaluatorError` for what can't be a reward."""
    if not all(map(math.isfinite, (score.reward, *score.trace_rewards))):
        raise EvaluatorError(f"the evaluator gave a reward that is not finite: {score.reward}, {score.trace_rewards}")
    if score.trace_rewards and len(score.trace_rewards) != len(traces):
        raise EvaluatorError(f"the evaluator gave {len(score.trace_rewards)} trace rewards for {len(traces)} traces")
    return score


def apply(score: Score, traces: Sequence[Trace], rule: PartialRule, dropped: Counter[str]) -> float:
    """Set every trace's reward under `rule` and return the session's."""
    if rule is PartialRule.ZERO:
        score = Score(0.0)
    rewards = score.trace_rewards or (score.reward,) * len(traces)
    for trace, reward in zip(traces, rewards, strict=True):
        trace.reward = reward
    if rule is PartialRule.MASK:
        mask(traces, dropped)
    return score.reward


def mask(traces: Sequence[Trace], dropped: Counter[str]) -> None:
    """Take every token out of the loss, and count it."""
    for trace in traces:
        if trace.trained_tokens:
            dropped[MASKED] += trace.trained_tokens
        trace.loss_mask[:] = False
        trace.logprobs[:] = 0.0
        trace.versions = ()
