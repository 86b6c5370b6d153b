# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes: how they come, how they are seen, how they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator

from nemo_gym_polar.rollouts.api.answers import answer
from nemo_gym_polar.rollouts.api.shapes import Accepted, Detail, NodeShape
from nemo_gym_polar.rollouts.api.views import node_view
from nemo_gym_polar.rollouts.control.coordinator import LOCAL, Coordinator
from nemo_gym_polar.rollouts.control.errors import NodeConflictError, UnknownNodeError
from nemo_gym_polar.rollouts.control.records import NodeRecord
from nemo_gym_polar.rollouts.nodes.base import Node

KIND = "http"
Workers = Annotated[int, Field(ge=1)]
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Detail, "description": "there is no such node"}}


class Registration(BaseModel):
    """A node that listens at `gateway_url` and takes sessions there."""

    model_config = ConfigDict(extra="forbid")

    node_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    gateway_url: str
    max_init_workers: Workers = 1
    max_run_workers: Workers = 1
    max_postrun_workers: Workers = 1
    heartbeat_interval_seconds: Workers = 30

    @field_validator("gateway_url")
    @classmethod
    def _reachable(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ValueError("is no node's address; give http://HOST:PORT")
        return url.rstrip("/")


class Heartbeat(BaseModel):
    """`metrics` may be left out: a node is asked for its load besides."""

    model_config = ConfigDict(extra="forbid")

    metrics: dict[str, Annotated[int, Field(ge=0)]] = {}


class CallbackResult(BaseModel):
    """What the reference system's nodes send when a session has ended; other fields are passed over."""

    session_id: str
    task_id: str
    status: str


TAKEN: dict[int | str, dict[str, Any]] = {409: {"model": Detail, "description": "the id is the service's own node's"}}
UNREACHABLE: dict[int | str, dict[str, Any]] = {502: {"model": Detail, "description": "the node did not answer"}}


def make_router(control: Coordinator, connect: Callable[[str, str], Node]) -> APIRouter:
    """`connect` makes a node from its id and its address."""
    router = APIRouter(tags=["nodes"])

    def known(node_id: str) -> NodeRecord:
        for node in control.nodes():
            if node.node_id == node_id:
                return node
        raise UnknownNodeError(f"there is no node {node_id!r}; register it first")

    @router.post("/nodes/register", response_model=NodeShape, responses=TAKEN)
    async def register(asked: Registration) -> Response:
        """Take a node in; one with the same id takes the other's place, but not the place of the service's own node."""
        if any(node.node_id == asked.node_id and node.kind == LOCAL for node in control.nodes()):
            raise NodeConflictError(f"node_id={asked.node_id!r} is the service's own node; give this one another id")
        about = asked.model_dump(exclude={"node_id", "gateway_url"})
        node = connect(asked.node_id, asked.gateway_url)
        return answer(node_view(await control.add_node(node, kind=KIND, url=asked.gateway_url, metadata=about)))

    @router.post("/nodes/{node_id}/heartbeat", response_model=NodeShape, responses=UNKNOWN)
    async def heartbeat(node_id: str, beat: Heartbeat) -> Response:
        """404 tells a node to register again."""
        return answer(node_view(known(node_id)))

    @router.get("/nodes", response_model=list[NodeShape])
    async def nodes() -> Response:
        return answer(list(map(node_view, control.nodes())))

    @router.get("/nodes/{node_id}", response_model=NodeShape, responses=UNKNOWN)
    async def node(node_id: str) -> Response:
        return answer(node_view(known(node_id)))

    @router.delete("/nodes/{node_id}", response_model=NodeShape, responses={**UNKNOWN, **UNREACHABLE})
    async def drain(node_id: str, remove: bool = False) -> Response:
        """No more sessions for this node. `remove` forgets it and gives up what it still runs."""
        if not remove:
            return answer(node_view(await control.drain(node_id)))
        gone = known(node_id)
        await control.remove(node_id)
        return answer(node_view(gone))

    @router.post("/callbacks/session_result", responses={404: {"model": Detail}})
    async def session_result(result: CallbackResult) -> Accepted:
        """Thanks: the result itself is fetched from the session's node, so that none is lost or forged."""
        await control.session(result.session_id)
        return Accepted()

    return router
