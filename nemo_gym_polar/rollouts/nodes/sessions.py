# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node's sessions by themselves, as the reference system's gateways offer them: for a caller that has no service.

Such a caller takes results from here: they are kept until the session is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Response
from pydantic import Field

from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.gateway import Gateway
from nemo_gym_polar.gateway.completions import completions
from nemo_gym_polar.rollouts.admission import check_request
from nemo_gym_polar.rollouts.api.answers import answer
from nemo_gym_polar.rollouts.api.views import STATUS, timing, trace_views
from nemo_gym_polar.rollouts.nodes.base import Assignment, Node, Report
from nemo_gym_polar.rollouts.results import rows
from nemo_gym_polar.rollouts.specs import AgentSpec, BuilderSpec, EvaluatorSpec, Finite, RuntimeSpec, Spec
from nemo_gym_polar.rollouts.task import SessionResult, TaskRequest

GENERATED_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


class Dispatch(Spec):
    """One session. The reference system's id doubles as the API key; here it is public, and the secret another."""

    session_id: Annotated[str, Field(pattern=GENERATED_ID)]
    task_id: Annotated[str, Field(min_length=1)]
    instruction: Annotated[str, Field(min_length=1)]
    dispatch_priority: Annotated[int, Field(ge=0, le=100)] = 0
    remaining_timeout_seconds: Annotated[Finite, Field(gt=0)]
    runtime: RuntimeSpec | None = None
    agent: AgentSpec
    builder: BuilderSpec = BuilderSpec()
    evaluator: EvaluatorSpec | None = None
    callback_url: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    def request(self) -> TaskRequest:
        fields = self.model_dump(exclude={"session_id", "remaining_timeout_seconds", "callback_url"})
        return TaskRequest.model_validate({**fields, "timeout_seconds": self.remaining_timeout_seconds})


def make_router(node: Callable[[], Node], gateway: Gateway) -> APIRouter:
    router = APIRouter(prefix="/sessions", tags=["sessions"])

    async def report(session_id: str) -> Report:
        for found in await node().reports(0, 0.0):
            if found.session_id == session_id:
                return found
        raise HTTPException(404, f"there is no session {session_id!r} here; it may have been fetched and forgotten")

    @router.post("", status_code=201)
    async def dispatch(asked: Dispatch) -> Response:
        """Run a session. 409 if its id is known here."""
        if asked.callback_url:
            raise HTTPException(422, "callback_url: nodes call nobody back; poll GET /sessions/ID, or submit a task")
        request = asked.request()
        check_request(request)
        if any(found.session_id == asked.session_id for found in await node().reports(0, 0.0)):
            raise HTTPException(409, f"session {asked.session_id!r} is known here; choose another id")
        await node().start(Assignment(asked.session_id, request, 0))
        return answer(state(node().id, await report(asked.session_id)), 201)

    @router.get("")
    async def sessions() -> Response:
        return answer({"sessions": [state(node().id, found) for found in await node().reports(0, 0.0)]})

    @router.get("/{session_id}")
    async def session(session_id: str) -> Response:
        found = await report(session_id)
        return await asyncio.to_thread(lambda: answer({**state(node().id, found), **ended(found.result)}))

    @router.get("/{session_id}/completions")
    async def calls(session_id: str) -> Response:
        """Every model call so far, with its tokens; from the journal once the session has ended."""
        forest = await asyncio.to_thread(find_forest, gateway, session_id)
        listed = await asyncio.to_thread(completions, forest)
        return answer({"session_id": session_id, "completion_count": len(listed), "completions": listed})

    @router.delete("/{session_id}")
    async def delete(session_id: str) -> Response:
        """End a session; one that has ended is forgotten."""
        found = await report(session_id)
        await (node().acknowledge([session_id]) if found.status.final else node().cancel(session_id))
        return answer(state(node().id, found))

    return router


def find_forest(gateway: Gateway, session_id: str) -> Forest:
    if session_id in gateway:
        return gateway.session(session_id).forest
    path = gateway.settings.journals / f"{session_id}.journal"
    if "/" in session_id or not path.is_file():
        raise HTTPException(404, f"there is no session {session_id!r} here")
    return recover(path).forest


def state(node_id: str, report: Report) -> dict[str, Any]:
    about = {"session_id": report.session_id, "status": STATUS[report.status], "state": report.status}
    return {**about, "task_id": report.result.task_id if report.result else None, "node_id": node_id}


def ended(result: SessionResult | None) -> dict[str, Any]:
    """The reference system's SessionResult, once there is one."""
    if result is None:
        return {"trajectory": None}
    traces = trace_views(list(rows(result)))
    about = {"reward": result.reward, "dropped": result.dropped}
    return {
        "trajectory": {"status": STATUS[result.status], "metadata": about, "traces": traces, "error": result.error},
        "timing": timing(result.timing),
        "error": result.error,
        "metadata": result.metadata,
        "reward": result.reward,
    }
