# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What is known of an evaluation, of a step, and of a run as a whole: plain values, ready for JSON."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nemo_gym_polar.forest.staleness import Ages
from nemo_gym_polar.rollouts.service import GroupResult
from nemo_gym_polar.rollouts.task import SessionResult

if TYPE_CHECKING:  # who shows reports needs no torch
    from nemo_gym_polar.training.trainer import StepMetrics

Status = Literal["running", "completed", "interrupted", "failed"]


class Stopwatch:
    """Seconds of wall time since it was made, after those of `before`."""

    def __init__(self, before: float = 0.0) -> None:
        self._before, self._started = before, time.monotonic()

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._started


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Held-out tasks after `step` steps. A session that failed counts with the reward it was given, mostly 0."""

    when: Literal["before", "after"]
    step: int
    reward: float
    standard_error: float
    tasks: int
    sessions: int
    seconds: float
    statuses: dict[str, int]
    sampled_tokens: int


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step. `values` are the trainer's measurements, `untrained` sampled tokens without gradient by cause."""

    step: int
    reward: float
    reward_deviation: float
    sessions: int
    turns: float
    groups: int
    zero_variance_groups: int
    first_prompt_mismatches: int
    statuses: dict[str, int]
    excluded: dict[str, int]
    trained_tokens: int
    untrained: dict[str, int]
    updates: int
    lr: float
    gradient_norm: float
    rollout_seconds: float
    train_seconds: float
    push_seconds: float
    values: dict[str, float]

    def scalars(self) -> dict[str, float]:
        """Every number by its path, for a plot."""
        return dict(_numbers("", asdict(self)))


@dataclass(slots=True)
class Summary:
    """A run so far. `seconds` is wall time, all resumed parts together; `error` says why it failed."""

    directory: str
    seed: int
    status: Status = "running"
    reward_before: float | None = None
    reward_after: float | None = None
    steps: int = 0
    sessions: int = 0
    evaluation_sessions: int = 0
    seconds: float = 0.0
    trained_tokens: int = 0
    dropped_tokens_by_cause: dict[str, int] = field(default_factory=dict)
    zero_variance_groups: int = 0
    groups: int = 0
    first_prompt_mismatches: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    logprob_error_max: float = 0.0
    error: str | None = None

    def count_step(self, report: StepReport) -> None:
        self.steps = report.step
        self.sessions += report.sessions
        self.trained_tokens += report.trained_tokens
        _add(self.dropped_tokens_by_cause, report.untrained)
        self.zero_variance_groups += report.zero_variance_groups
        self.groups += report.groups
        self.first_prompt_mismatches += report.first_prompt_mismatches
        _add(self.statuses, report.statuses)
        self.logprob_error_max = max(self.logprob_error_max, report.values.get("logprob_error_max", 0.0))

    def count_evaluation(self, evaluation: Evaluation) -> None:
        if evaluation.when == "before":
            self.reward_before = evaluation.reward
        else:
            self.reward_after = evaluation.reward
        self.evaluation_sessions += evaluation.sessions
        _add(self.dropped_tokens_by_cause, {"evaluation": evaluation.sampled_tokens})

    def restore(self, kept: dict[str, Any]) -> None:
        """Take over what a checkpoint kept of an earlier part."""
        for name in set(kept) - {"directory", "seed", "status", "reward_after", "error"}:
            setattr(self, name, kept[name])


def report_evaluation(
    when: Literal["before", "after"], step: int, groups: Sequence[GroupResult], seconds: float
) -> Evaluation:
    sessions = [session for group in groups for session in group.sessions]
    rewards = np.array([session.reward for session in sessions])
    return Evaluation(
        when=when,
        step=step,
        reward=float(rewards.mean()),
        standard_error=float(rewards.std() / math.sqrt(len(rewards))),
        tasks=len(groups),
        sessions=len(sessions),
        seconds=seconds,
        statuses=_statuses(sessions),
        sampled_tokens=sum(sampled_tokens(session) for session in sessions),
    )


def report_step(
    groups: Sequence[GroupResult], metrics: StepMetrics, rollout_seconds: float, push_seconds: float
) -> StepReport:
    sessions = [session for group in groups for session in group.sessions]
    rewards = np.array([session.reward for session in sessions])
    credit = metrics.credit
    return StepReport(
        step=metrics.step,
        reward=float(rewards.mean()),
        reward_deviation=float(rewards.std()),
        sessions=len(sessions),
        turns=float(np.mean([session.metadata.get("turns", 0) for session in sessions])),
        groups=credit.groups,
        zero_variance_groups=credit.zero_variance_groups,
        first_prompt_mismatches=sum(len(group.first_prompt_mismatches) for group in groups),
        statuses=_statuses(sessions),
        excluded=dict(credit.excluded),
        trained_tokens=metrics.trained_tokens,
        untrained=dict(credit.untrained + sum((Counter(session.dropped) for session in sessions), Counter())),
        updates=metrics.updates,
        lr=metrics.lr,
        gradient_norm=metrics.gradient_norm,
        rollout_seconds=rollout_seconds,
        train_seconds=metrics.seconds,
        push_seconds=push_seconds,
        values={**metrics.values, **_ages(credit.ages)},
    )


def sampled_tokens(session: SessionResult) -> int:
    """All tokens that the policy sampled in a session, trained on or not."""
    return sum(trace.trained_tokens for trace in session.traces) + sum(session.dropped.values())


def _ages(ages: Ages) -> dict[str, float]:
    """How many weight updates the sampled tokens are behind."""
    return {"token_age": ages.mean, "token_age_max": float(ages.oldest), "tokens_of_unknown_age": float(ages.unknown)}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for cause, count in more.items():
        total[cause] = total.get(cause, 0) + count


def _statuses(sessions: Sequence[SessionResult]) -> dict[str, int]:
    return dict(Counter(str(session.status) for session in sessions))


def _numbers(prefix: str, values: dict[str, Any]) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            found += _numbers(f"{prefix}{name}/", value)
        elif isinstance(value, int | float):
            found.append((f"{prefix}{name}", float(value)))
    return found
