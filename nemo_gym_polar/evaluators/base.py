# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How a finished session is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.runtimes.base import Runtime


class EvaluatorError(Exception):
    """An evaluator can't be made or gave no score."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluator may look at: the live sandbox, the traces, and the seconds that are left."""

    runtime: Runtime
    traces: Sequence[Trace]
    harness_status: str
    seconds_left: float


@dataclass(frozen=True, slots=True)
class Score:
    """`reward` for the session; `trace_rewards`, if given, one per trace, replace it trace by trace."""

    reward: float
    trace_rewards: tuple[float, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


class Evaluator(Protocol):
    async def evaluate(self, evaluation: Evaluation) -> Score: ...
