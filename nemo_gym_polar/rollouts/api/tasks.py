# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Submit, look at, and cancel tasks; look at their sessions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from nemo_gym_polar.rollouts.admission import check_request
from nemo_gym_polar.rollouts.api import examples
from nemo_gym_polar.rollouts.api.answers import answer
from nemo_gym_polar.rollouts.api.results import Results
from nemo_gym_polar.rollouts.api.shapes import (
    Detail,
    SessionList,
    SessionShape,
    Submitted,
    TaskList,
    TaskShape,
)
from nemo_gym_polar.rollouts.api.views import session_view, task_line
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.errors import NoTracesError
from nemo_gym_polar.rollouts.control.records import TaskState
from nemo_gym_polar.rollouts.task import TaskRequest

WithTraces = Annotated[bool, Query(description="with token arrays; false leaves trajectory.traces empty")]
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Detail, "description": "there is no such task or session"}}
REFUSED: dict[int | str, dict[str, Any]] = {
    409: {"model": Detail, "description": "the id is taken by another task, or was cancelled"},
    413: {"model": Detail, "description": "the request is too large"},
    422: {"model": Detail, "description": "a field is wrong; the message names it, its value and the remedy"},
    429: {"model": Detail, "description": "too many sessions wait; Retry-After says when to ask again"},
}


def make_router(control: Coordinator) -> APIRouter:
    router = APIRouter(tags=["tasks"])

    results = Results(control)

    @router.post("/rollout/task/submit", response_model=Submitted, responses=REFUSED, openapi_extra=examples.SUBMIT)
    async def submit(request: TaskRequest) -> Response:
        """Run a task. The same task again is not run again: it is the same task, whatever became of it."""
        check_request(request)
        task = await control.submit(request)
        return answer({"task_id": task.task_id, "status": task.state, "total_sessions": task.total_sessions})

    @router.get("/rollout/task/{task_id:path}", response_model=TaskShape, responses=UNKNOWN)
    async def show(task_id: str, traces: WithTraces = True) -> Response:
        """A task and the results of its sessions that have ended."""
        return answer(await results.task(await control.task(task_id), traces=traces))

    @router.delete("/rollout/task/{task_id:path}", response_model=TaskShape, responses=UNKNOWN)
    async def cancel(task_id: str, register_if_missing: bool = False, traces: WithTraces = False) -> Response:
        """End a task's sessions. `register_if_missing` keeps an unknown id from being submitted afterwards."""
        task = await control.cancel(task_id, register_if_missing=register_if_missing)
        return answer(await results.task(task, traces=traces))

    @router.get("/tasks", response_model=TaskList)
    async def tasks(
        status: TaskState | None = None,
        harness: str | None = None,
        since: Annotated[
            float | None, Query(description="made at or after, in Unix seconds", allow_inf_nan=False)
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> Response:
        """Tasks, the newest first."""
        found = await control.tasks(state=status, harness=harness, since=since, limit=limit)
        return answer({"tasks": list(map(task_line, found))})

    @router.get("/tasks/{task_id:path}/sessions", response_model=SessionList, responses=UNKNOWN)
    async def sessions(task_id: str) -> Response:
        """Every attempt at every sample, without token arrays."""
        found = await control.sessions(task_id)
        return answer({"task_id": task_id, "sessions": list(map(session_view, found))})

    @router.get("/sessions/{session_id}", response_model=SessionShape, responses=UNKNOWN)
    async def session(session_id: str, traces: WithTraces = True) -> Response:
        return answer(await results.session(await control.session(session_id), traces=traces))

    @router.get("/sessions/{session_id}/traces", responses=UNKNOWN)
    async def lines(session_id: str) -> Response:
        """The traces as they were written: one JSON object a line."""
        path = await control.traces(session_id)
        try:
            return Response(await asyncio.to_thread(path.read_bytes), media_type="application/x-ndjson")
        except FileNotFoundError:
            raise NoTracesError(f"the traces of session {session_id} were removed from {path.parent}") from None

    @router.delete("/sessions/{session_id}", response_model=SessionShape, responses=UNKNOWN)
    async def cancel_session(session_id: str) -> Response:
        """End one session; its sample ends with it."""
        return answer(session_view(await control.cancel_session(session_id)))

    @router.get("/rollout/status")
    async def status() -> Response:
        """Queue, stages, nodes and totals."""
        found = await control.status()
        states = {node.node_id: node.state for node in control.nodes()}
        last = await control.store.last_event()
        return answer({**found.model_dump(mode="json"), "node_states": states, "last_event": last})

    return router
