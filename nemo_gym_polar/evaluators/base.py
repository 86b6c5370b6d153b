# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How a finished session is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.runtimes.base import Runtime

Carry = Literal["workspace", "patch", "nothing"]
"""What goes over from the harness's sandbox to one of the evaluator's own."""


class EvaluatorError(Exception):
    """An evaluator can't be made or gave no score."""


class EvaluatorTimeoutError(EvaluatorError):
    """An evaluator gave no score in the time that it had."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluator may look at: the sandbox to score in, the traces, and the seconds that are left.

    `harness_runtime`, if there is one, is the sandbox that the harness left; `runtime` is then a fresh one, into which
    the evaluator carries over what counts. `env` is the task's own environment for scoring.
    """

    runtime: Runtime
    traces: Sequence[Trace]
    harness_status: str
    seconds_left: float
    env: Mapping[str, str] = field(default_factory=dict)
    harness_runtime: Runtime | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """`reward` for the session; `trace_rewards`, if given, one per trace, replace it trace by trace."""

    reward: float
    trace_rewards: tuple[float, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


class Evaluator(Protocol):
    """`carry` says what it takes over where the task gives it a sandbox of its own."""

    @property
    def carry(self) -> Carry: ...

    async def evaluate(self, evaluation: Evaluation) -> Score: ...
