# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A task, its sessions and their results."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.forest.trace import Trace


class Spec(BaseModel):
    """Unknown keys are refused, so that a typo is seen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentSpec(Spec):
    harness: str = "pi"
    model_name: str = "polar-policy"
    settings: dict[str, Any] = {}
    env: dict[str, str] = {}


class RuntimeSpec(Spec):
    backend: str = "bubblewrap"
    files: dict[str, str] = {}
    settings: dict[str, Any] = {}


class EvaluatorSpec(Spec):
    strategy: str = "command"
    config: dict[str, Any] = {}


class BuilderSpec(Spec):
    strategy: str = "prefix_merging"
    config: dict[str, Any] = {}


class TaskRequest(Spec):
    """One problem; `num_samples` sessions of it form a GRPO group."""

    task_id: Annotated[str, Field(min_length=1)]
    instruction: Annotated[str, Field(min_length=1)]
    num_samples: Annotated[int, Field(ge=1)] = 1
    timeout_seconds: Annotated[float, Field(gt=0)] = 600.0
    runtime: RuntimeSpec = RuntimeSpec()
    agent: AgentSpec = AgentSpec()
    builder: BuilderSpec = BuilderSpec()
    evaluator: EvaluatorSpec = EvaluatorSpec()
    metadata: dict[str, Any] = {}


class SessionStatus(StrEnum):
    QUEUED = "QUEUED"
    INIT = "INIT"
    READY = "READY"
    RUNNING = "RUNNING"
    POSTRUN = "POSTRUN"
    COMPLETED = "COMPLETED"
    TIMEOUT = "TIMEOUT"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"

    @property
    def final(self) -> bool:
        return self in _FINAL


_FINAL = frozenset({SessionStatus.COMPLETED, SessionStatus.TIMEOUT, SessionStatus.ERROR, SessionStatus.CANCELLED})


class SessionResult(BaseModel):
    """How one session ended. `traces` are scored; `dropped` counts sampled tokens that train nothing, by cause."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session_id: str
    task_id: str
    sample: int
    status: SessionStatus
    reward: float = 0.0
    traces: list[Trace] = []
    dropped: dict[str, int] = {}
    timing: dict[str, float] = {}
    error: str | None = None
    metadata: dict[str, Any] = {}
