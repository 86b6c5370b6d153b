# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The answers' shapes: the reference system's fields, then ours.

Answers with token arrays are not made through these models; they describe them in the OpenAPI page.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from nemo_gym_polar.rollouts.control.records import TaskState


class Submitted(BaseModel):
    task_id: str
    status: TaskState
    total_sessions: int


class TraceShape(BaseModel):
    """`prompt_ids` come before the first token of the loss; `response_ids`, `loss_mask` and `response_logprobs` (0.0
    where the mask is 0) have one length. `prompt_messages` were said before the trace's first own answer,
    `response_messages` from it on; both and `tools` are OpenAI chat's. The forest's own view of the trace follows."""

    prompt_ids: list[int]
    response_ids: list[int]
    loss_mask: list[int]
    response_logprobs: list[float] | None
    prompt_messages: list[dict[str, Any]] = []
    response_messages: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] | None = None
    finish_reason: str | None
    reward: float | None
    metadata: dict[str, Any]
    index: int
    kind: str
    edge: str
    weight: float
    group: str | None
    turns: list[int]
    versions: list[dict[str, Any]]
    parent: int | None
    shared_prefix: int
    digest: str


class TrajectoryShape(BaseModel):
    """`status` is COMPLETED, TIMEOUT or ERROR."""

    status: str
    metadata: dict[str, Any] = {}
    traces: list[TraceShape] = []
    error: str | None = None


class SessionShape(BaseModel):
    """`status` is the reference system's name of it, `state` ours; times of `timing` are milliseconds."""

    session_id: str
    task_id: str
    status: str
    trajectory: TrajectoryShape | None = Field(description="null until the session has ended")
    timing: dict[str, float]
    node_id: str | None
    error: str | None
    metadata: dict[str, Any]
    state: str
    sample: int
    attempt: int
    current: bool
    usable: bool
    lost: str | None
    reward: float | None
    first_prompt: str | None = None
    dropped: dict[str, int]
    created: float
    updated: float
    result_path: str | None


class MismatchShape(BaseModel):
    """A session that began with another prompt than its group: the texts around the first difference, null where they
    are not kept, or where several sessions differ and this one is not among the first."""

    sample: int
    session_id: str
    theirs: str | None = None
    own: str | None = None


class TaskShape(BaseModel):
    """`results` has the sessions that ended; attempts that another one took the place of are not among them."""

    task_id: str
    status: TaskState
    total_sessions: int
    completed_sessions: int
    results: list[SessionShape] = []
    result_paths: list[str] = []
    usable_sessions: int
    selected_samples: list[int] | None
    first_prompt_mismatches: list[MismatchShape] = []
    created: float
    ended: float | None
    error: str | None


class TaskLine(BaseModel):
    """A task in a list. Times are Unix seconds."""

    task_id: str
    status: TaskState
    harness: str | None
    total_sessions: int
    completed_sessions: int
    usable_sessions: int
    created_at: float
    updated_at: float
    error: str | None


class TaskList(BaseModel):
    tasks: list[TaskLine]


class SessionList(BaseModel):
    task_id: str
    sessions: list[SessionShape]


class StageMetrics(BaseModel):
    """Sessions by stage."""

    init_queue_depth: int = 0
    init_inflight: int = 0
    ready_depth: int = 0
    run_inflight: int = 0
    postrun_queue_depth: int = 0
    postrun_inflight: int = 0


class NodeShape(BaseModel):
    """`healthy`: it answers; `capacity` is how many sessions it takes in all stages together."""

    node_id: str
    gateway_url: str | None
    max_init_workers: int
    max_run_workers: int
    max_postrun_workers: int
    metrics: StageMetrics
    dispatch_reservations: int = 0
    healthy: bool
    draining: bool
    heartbeat_interval_seconds: int
    last_heartbeat: str
    kind: str
    state: str
    capacity: int
    sessions: int
    stages: dict[str, int]
    pressure: float | None
    policy_version: str | None


class Detail(BaseModel):
    """How every refusal looks; of several fields, a list of objects with `loc`, `msg` and `type`."""

    detail: str | list[dict[str, Any]]


class Accepted(BaseModel):
    status: str = "accepted"


class NodeInference(BaseModel):
    """`policy_version` is the weights' version that the node names."""

    paused: bool
    policy_version: str | None


class InferenceStatus(BaseModel):
    """`paused`: no generation is begun on any node. `nodes` is what each last said of itself."""

    paused: bool
    nodes: dict[str, NodeInference]
