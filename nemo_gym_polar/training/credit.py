# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Who gets how much of a group's rewards: one advantage per session, shared out over the session's traces.

The shares of a session add up to one, so a session of forty chains weighs as much as a session of one, and a policy
gains nothing by making more chains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nemo_gym_polar.forest.staleness import Ages, measure_ages, without_stale
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.scoring import MASKED
from nemo_gym_polar.rollouts.task import SessionResult
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.settings import CreditSettings

Float64 = NDArray[np.float64]
TraceScore = Callable[[SessionResult, Trace], float | None]
"""The reward of one trace, or None to let it inherit the session's advantage."""

STD_EPSILON = 1e-6
ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class Example:
    """A trace that gives gradient. `weight` is its share of its session."""

    trace: Trace
    advantage: float
    weight: float


@dataclass(slots=True)
class Credit:
    """What a batch of groups gives to learn from.

    `token_mass` (tokens x weight) and `sessions` count every session that took part, those without gradient too: they
    are the denominators of the loss. `excluded` counts sessions, `untrained` sampled tokens without gradient, by cause.
    `ages` are of the tokens as they came, before any was found too old.
    """

    examples: list[Example] = field(default_factory=list)
    groups: int = 0
    zero_variance_groups: int = 0
    sessions: int = 0
    token_mass: float = 0.0
    excluded: Counter[str] = field(default_factory=Counter)
    ages: Ages = field(default_factory=Ages)
    untrained: Counter[str] = field(default_factory=Counter)

    def leave_out(self, cause: str, tokens: int) -> None:
        if tokens:
            self.untrained[cause] += tokens

    @property
    def trained_tokens(self) -> int:
        return sum(example.trace.trained_tokens for example in self.examples)


def assign_credit(
    groups: Sequence[Sequence[SessionResult]],
    settings: CreditSettings,
    score: TraceScore | None = None,
    *,
    version: int | None = None,
) -> Credit:
    """Each inner sequence holds the sessions of one task. `score` replaces what `settings.trace_rewards` says;
    `version` is that of the weights that learn, which bounds of age need."""
    if version is None and (settings.max_token_age is not None or settings.max_group_age is not None):
        raise TrainingError("credit.max_token_age and max_group_age need the version of the weights that learn")
    score = score or (own_reward if settings.trace_rewards == "trace" else session_reward)
    credit = Credit()
    for group in groups:
        fresh = group if version is None else _fresh(credit, group, settings, version)
        _credit_group(credit, fresh, settings, score)
    return credit


def session_reward(session: SessionResult, trace: Trace) -> None:
    """Every trace inherits its session's advantage."""


def own_reward(session: SessionResult, trace: Trace) -> float | None:
    """A trace that was scored by itself answers for that score."""
    return trace.reward


def baselines(rewards: Float64, kind: str) -> Float64:
    """What each of a group's rewards is measured against, [S] -> [S].

    `group_mean` is that of GRPO (Shao et al. 2024, arXiv:2402.03300, eq. 3 with 4.1.2). `leave_one_out` is the mean of
    the others, which keeps the gradient unbiased (Kool et al. 2019, "Buy 4 REINFORCE samples, get a baseline for
    free!"). A session by itself is its own baseline.
    """
    if len(rewards) < 2 or kind == "group_mean":
        return np.full_like(rewards, rewards.mean())
    return (rewards.sum() - rewards) / (len(rewards) - 1)


def _fresh(
    credit: Credit, group: Sequence[SessionResult], settings: CreditSettings, version: int
) -> Sequence[SessionResult]:
    """The group without what is too old; empty if it is so as a whole."""
    ages = measure_ages((trace for session in group for trace in session.traces), version)
    credit.ages.merge(ages)
    if settings.max_group_age is not None and not ages.within(settings.max_group_age):
        credit.excluded["stale_group"] += len(group)
        credit.leave_out("stale_group", sum(trace.trained_tokens for one in group for trace in one.traces))
        return ()
    bound = settings.max_token_age
    if bound is None or ages.within(bound):
        return group
    return [_fresh_session(credit, session, version, bound) for session in group]


def _fresh_session(credit: Credit, session: SessionResult, version: int, bound: int) -> SessionResult:
    traces = [without_stale(trace, version, bound) for trace in session.traces]
    before, after = (sum(trace.trained_tokens for trace in some) for some in (session.traces, traces))
    credit.leave_out("stale_tokens", before - after)
    return session.model_copy(update={"traces": traces})


def _credit_group(credit: Credit, group: Sequence[SessionResult], settings: CreditSettings, score: TraceScore) -> None:
    credit.groups += 1
    taking_part = [session for session in group if not _excluded(credit, session, settings)]
    if not taking_part:
        return
    rewards = np.array([_finite(session.reward, session) for session in taking_part])
    baseline = baselines(rewards, settings.baseline)
    scale = rewards.std() + STD_EPSILON if settings.scale == "group_std" else 1.0
    before = len(credit.examples)
    for session, base in zip(taking_part, baseline, strict=True):
        _credit_session(credit, session, float(base), float(scale), settings, score)
    credit.zero_variance_groups += len(credit.examples) == before


def _excluded(credit: Credit, session: SessionResult, settings: CreditSettings) -> bool:
    cause = _exclusion(session, settings)
    if cause is None:
        return False
    credit.excluded[cause] += 1
    credit.leave_out(cause, sum(trace.trained_tokens for trace in session.traces))
    return True


def _exclusion(session: SessionResult, settings: CreditSettings) -> str | None:
    if session.status in settings.exclude:
        return f"session_{session.status.lower()}"
    if not settings.baseline_of_masked and not any(trace.trained_tokens for trace in session.traces):
        return "session_masked" if MASKED in session.dropped else "session_without_tokens"
    return None


def _credit_session(
    credit: Credit,
    session: SessionResult,
    baseline: float,
    scale: float,
    settings: CreditSettings,
    score: TraceScore,
) -> None:
    credit.sessions += 1
    for trace, share in zip(session.traces, shares(session.traces, settings), strict=True):
        tokens = trace.trained_tokens
        reward = score(session, trace)
        reward = session.reward if reward is None else _finite(reward, session)
        advantage = (reward - baseline) / scale
        credit.token_mass += share * tokens
        if share == 0.0:
            credit.leave_out(trace.kind, tokens)
        elif abs(advantage) < ZERO:
            credit.leave_out("zero_advantage", tokens)
        elif tokens:
            credit.examples.append(Example(trace, advantage, share))


def shares(traces: Sequence[Trace], settings: CreditSettings) -> list[float]:
    """Each trace's share of its session: they add up to one, or are all zero if no trace may be trained on."""
    raw = [trace.weight * settings.kind_weight(trace.kind) * (trace.trained_tokens > 0) for trace in traces]
    total = sum(raw)
    return [weight / total if total else 0.0 for weight in raw]


def _finite(reward: float, session: SessionResult) -> float:
    if not np.isfinite(reward):
        raise TrainingError(f"session {session.session_id}: reward={reward} is not a number; mend its evaluator")
    return float(reward)
