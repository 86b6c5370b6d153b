# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the control plane keeps and shows: tasks, sessions, nodes, events. Times are Unix seconds."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest


class Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class TaskState(StrEnum):
    RUNNING = "running"
    """Accepted; sessions wait or run."""
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    """Every session has ended, one of them at least with a usable result."""
    FAILED = "failed"
    """Every session has ended and none is usable."""
    CANCELLED = "cancelled"


class TaskRecord(Record):
    """`ended_sessions` counts samples that have their final status; `usable_sessions` those of them that ended
    COMPLETED, or otherwise with tokens to train on. `selected_samples` is the group to train on after an early stop.
    `first_prompt_mismatches` are the samples that began with another prompt than most, None if there is none.
    `request` is None for a task that was cancelled before it came.
    """

    task_id: str
    state: TaskState
    request: TaskRequest | None
    created: float
    ended: float | None = None
    total_sessions: int
    ended_sessions: int = 0
    usable_sessions: int = 0
    selected_samples: list[int] | None = None
    error: str | None = None
    first_prompt_mismatches: list[int] | None = None


class SessionRecord(Record):
    """One attempt at one sample. `result` is the result without token arrays, `result_path` the directory-relative
    file of its traces, `first_prompt` a digest of the tokens that it began with; they come with the final status.
    `lost` says why an attempt was given up, if it was.

    Of a sample's attempts the last one is `current`: how it ends is how the sample ends. `cancelling` says why the
    session is to end early. `moves` counts how often the sample lost a node before its attempt had begun.
    """

    session_id: str
    task_id: str
    sample: int
    attempt: int
    status: SessionStatus
    node_id: str | None = None
    created: float
    updated: float
    reward: float | None = None
    error: str | None = None
    lost: str | None = None
    current: bool = True
    usable: bool = False
    cancelling: str | None = None
    moves: int = 0
    result: dict[str, Any] | None = None
    result_path: str | None = None
    first_prompt: str | None = None


class EventRecord(Record):
    """Something that happened, numbered in order. `kind` is like `task.submitted` or `session.running`."""

    id: int
    time: float
    kind: str
    task_id: str | None = None
    session_id: str | None = None
    node_id: str | None = None
    data: dict[str, Any] = {}


class NodeRecord(Record):
    """`state` is ready, draining, or lost; `seen` when it last answered."""

    node_id: str
    kind: str
    url: str | None = None
    state: str
    seen: float
    capacity: int = 0
    sessions: int = 0
    stages: dict[str, int] = {}
    pressure: float | None = None
    paused: bool = False
    policy_version: str | None = None
    metadata: dict[str, Any] = {}


class ServiceStatus(Record):
    """The service at one moment. `queue` counts waiting sessions by priority, `stages` live ones by status, `nodes` by
    node; `tasks` and `sessions` count all that is kept, by state and by status. `unstored` counts results that the disk
    refuses, `trouble` says why; they wait at their nodes.
    """

    time: float
    queue: dict[int, int]
    stages: dict[SessionStatus, int]
    nodes: dict[str, int]
    tasks: dict[TaskState, int]
    sessions: dict[SessionStatus, int]
    unstored: int = 0
    trouble: str | None = None
