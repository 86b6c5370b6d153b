# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The service's FastAPI app. Its OpenAPI page is at /docs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.middleware import Middleware
from pydantic import SecretStr

from nemo_gym_polar import __version__
from nemo_gym_polar.rollouts.api import callbacks, events, inference, metrics, nodes, tasks
from nemo_gym_polar.rollouts.api.guard import BodyLimit, make_guard
from nemo_gym_polar.rollouts.api.refusals import handle_refusals
from nemo_gym_polar.rollouts.api.settings import ApiSettings
from nemo_gym_polar.rollouts.api.shapes import Detail
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.nodes.base import Node
from nemo_gym_polar.rollouts.retention import api as retention

ABOUT = """Rollouts of unmodified agents: submit a task, get token-exact traces.

Send the control token as `Authorization: Bearer …` or `X-Polar-Control-Token`. Refusals are `{"detail": …}`.
"""
GUARDED: dict[int | str, dict[str, Any]] = {
    400: {"model": Detail, "description": "the request's body can't be read"},
    401: {"model": Detail, "description": "the control token is missing or wrong"},
    413: {"model": Detail, "description": "the request is too large"},
    422: {"model": Detail, "description": "a field is wrong; the message names it, its value and the remedy"},
    503: {"model": Detail, "description": "the store can't be read or written now"},
}


def make_app(
    control: Coordinator,
    settings: ApiSettings,
    connect: Callable[[str, str], Node],
    token: SecretStr | None = None,
    more: tuple[APIRouter, ...] = (),
) -> FastAPI:
    """`connect` makes a node from its id and its address; `token` is what callers show; `more` are routers behind the
    same door."""
    app = FastAPI(
        title="polar rollout service",
        version=__version__,
        description=ABOUT,
        middleware=[Middleware(BodyLimit, limit=settings.max_body_bytes)],
    )
    handle_refusals(app)
    app.include_router(_health(control))
    guard = [Depends(make_guard(token))]
    routers = (
        tasks.make_router(control),
        callbacks.make_router(control),
        nodes.make_router(control, connect),
        events.make_router(control, settings.keep_alive),
        inference.make_router(control),
        metrics.make_router(control),
        retention.make_router(control),
        *more,
    )
    for router in routers:
        app.include_router(router, dependencies=guard, responses=GUARDED)
    return app


def _health(control: Coordinator) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/health")
    async def health() -> dict[str, Any]:
        """`status` is ok, or degraded with the trouble named: then results wait at their nodes."""
        found = await control.status()
        states = [node.state for node in control.nodes()]
        return {
            "status": "degraded" if found.trouble else "ok",
            "nodes": len(states),
            "nodes_ready": states.count("ready"),
            "sessions": sum(found.stages.values()),
            "trouble": found.trouble,
        }

    return router
