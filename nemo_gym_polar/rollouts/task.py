# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A task, its sessions and their results."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.specs import (
    AgentSpec,
    BuilderSpec,
    EvaluatorSpec,
    Finite,
    PrepareAction,
    RuntimeSpec,
    Spec,
)

__all__ = [
    "AgentSpec",
    "BuilderSpec",
    "EarlyStop",
    "EvaluatorSpec",
    "PrepareAction",
    "RuntimeSpec",
    "SessionResult",
    "SessionStatus",
    "Spec",
    "TaskRequest",
    "agent_timeout",
    "sampling_seed",
]

NO_EVALUATOR = EvaluatorSpec(strategy="session_completed")


class EarlyStop(StrEnum):
    """Which sessions count towards `early_stop_min_usable_sessions`."""

    FASTEST = "fastest"
    """Any: the others are cancelled once so many are usable. Short sessions are favoured, so the group is biased."""
    IN_ORDER = "in_order"
    """Samples in the order of their numbers: how long one takes doesn't decide whether it counts. Unbiased."""


class TaskRequest(Spec):
    """One problem; `num_samples` sessions of it form a GRPO group.

    Of two tasks the one with the higher `dispatch_priority` starts first. `callback_url` is told of every result.
    Metadata that means something: `agent_timeout` (seconds for the harness alone), `eval_sampling_seed_base` (sample k
    samples with this seed plus k); `group_id`, `policy_version` and `rollout_step` are the trainer's own and come back.
    """

    task_id: Annotated[str, Field(min_length=1)]
    instruction: Annotated[str, Field(min_length=1)]
    num_samples: Annotated[int, Field(ge=1)] = 1
    dispatch_priority: Annotated[int, Field(ge=0, le=100)] = 0
    early_stop_min_usable_sessions: Annotated[int, Field(ge=1)] | None = None
    early_stop: EarlyStop = EarlyStop.FASTEST
    timeout_seconds: Annotated[Finite, Field(gt=0)] = 600.0
    runtime: RuntimeSpec = RuntimeSpec()
    agent: AgentSpec = AgentSpec()
    builder: BuilderSpec = BuilderSpec()
    evaluator: EvaluatorSpec = NO_EVALUATOR
    callback_url: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("runtime", "evaluator", mode="before")
    @classmethod
    def _null_is_the_default(cls, given: Any, info: ValidationInfo) -> Any:
        return cls.model_fields[str(info.field_name)].default if given is None else given

    @field_validator("callback_url")
    @classmethod
    def _callable(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("is no address to call; give http://HOST/PATH or https://HOST/PATH")
        return url

    @model_validator(mode="after")
    def _numbers_fit(self) -> TaskRequest:
        wanted = self.early_stop_min_usable_sessions
        if wanted is not None and wanted > self.num_samples:
            raise ValueError(
                f"early_stop_min_usable_sessions={wanted} is more than num_samples={self.num_samples}: lower it"
            )
        agent_timeout(self.metadata)
        sampling_seed(self.metadata, 0)
        return self


def agent_timeout(metadata: Mapping[str, Any]) -> float | None:
    """Seconds for the harness alone, if the task says."""
    value = metadata.get("agent_timeout")
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise ValueError(f"metadata.agent_timeout={value!r}: give a positive number of seconds")
    return float(value)


def sampling_seed(metadata: Mapping[str, Any], sample: int) -> int | None:
    """The seed of one sample, if the task says: each has its own, and the same one every time."""
    base = metadata.get("eval_sampling_seed_base")
    if base is None:
        return None
    if not isinstance(base, int) or isinstance(base, bool) or base < 0:
        raise ValueError(f"metadata.eval_sampling_seed_base={base!r}: give a whole number from 0 on")
    return base + sample


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
    """How one session ended. `traces` are scored; `dropped` counts sampled tokens that train nothing, by cause.
    `conversations` has what was said in each trace, or is empty; `first_prompt` is a digest of the tokens that it began
    with, None if there were none."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session_id: str
    task_id: str
    sample: int
    status: SessionStatus
    reward: float = 0.0
    traces: list[Trace] = []
    conversations: list[dict[str, Any]] = []
    dropped: dict[str, int] = {}
    timing: dict[str, float] = {}
    error: str | None = None
    metadata: dict[str, Any] = {}
    first_prompt: str | None = None
