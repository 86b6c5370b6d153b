# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The node protocol over HTTP, as a router of the node's gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from nemo_gym_polar.rollouts.api.answers import answer
from nemo_gym_polar.rollouts.nodes import wire
from nemo_gym_polar.rollouts.nodes.base import Node, Report

PREFIX = "/node"
LONGEST_WAIT = 60.0  # seconds
DONE = 204


def make_router(node: Callable[[], Node]) -> APIRouter:
    """All calls may be repeated, as the protocol says."""
    router = APIRouter(prefix=PREFIX, tags=["node"])

    @router.post("/start", status_code=DONE)
    async def start(asked: wire.Start) -> None:
        await node().start(asked.assignment())

    @router.post("/cancel", status_code=DONE)
    async def cancel(asked: wire.Names) -> None:
        for session_id in asked.session_ids:
            await node().cancel(session_id)

    @router.get("/reports")
    async def reports(
        after: Annotated[int, Query(ge=0)] = 0, wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0.0
    ) -> Response:
        found = await node().reports(after, wait)
        return await asyncio.to_thread(told, node().id, found)

    @router.post("/acknowledge", status_code=DONE)
    async def acknowledge(asked: wire.Names) -> None:
        await node().acknowledge(asked.session_ids)

    @router.get("/load")
    async def load() -> Response:
        return answer({"id": node().id, "load": wire.encode_load(await node().load())})

    @router.post("/drain", status_code=DONE)
    async def drain() -> None:
        await node().drain()

    @router.post("/pause", status_code=DONE)
    async def pause(asked: wire.Pause) -> None:
        await node().pause(asked.seconds)

    @router.post("/resume", status_code=DONE)
    async def resume(asked: wire.Resume) -> None:
        await node().resume(asked.policy_version)

    return router


def told(node_id: str, found: Sequence[Report]) -> Response:
    try:
        return answer({"id": node_id, "reports": list(map(wire.encode_report, found))})
    except (TypeError, ValueError):  # one of them, so each is looked at
        return answer({"id": node_id, "reports": [wire.encode_report(wire.sendable(report)) for report in found]})
