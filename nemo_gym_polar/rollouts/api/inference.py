# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Hold back generation on all nodes while the weights change."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict

from nemo_gym_polar.rollouts.api.shapes import Detail, InferenceStatus, NodeInference
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.nodes.base import NodeError

LATE: dict[int | str, dict[str, Any]] = {504: {"model": Detail, "description": "generations were still in flight"}}
UNREACHABLE: dict[int | str, dict[str, Any]] = {502: {"model": Detail, "description": "a node did not answer"}}
Seconds = Annotated[float, Query(gt=0, le=3600, allow_inf_nan=False)]


class Resumption(BaseModel):
    """`policy_version` names the weights from here on; without it the engines are asked."""

    model_config = ConfigDict(extra="forbid")

    policy_version: str | int | None = None


def make_router(control: Coordinator) -> APIRouter:
    router = APIRouter(prefix="/admin/inference", tags=["weight updates"])

    def status() -> dict[str, NodeInference]:
        """As the nodes last said."""
        return {
            node.node_id: NodeInference(paused=node.paused, policy_version=node.policy_version)
            for node in control.nodes()
        }

    @router.post("/pause", responses=LATE)
    async def pause(timeout_seconds: Seconds = 300.0) -> InferenceStatus:
        """Begin no generation and wait until none is in flight. After a 504 some nodes are paused and others are not:
        ask again, or resume."""
        try:
            await control.pause(timeout_seconds)
        except NodeError as error:
            raise HTTPException(504, str(error)) from error
        return InferenceStatus(paused=True, nodes=status())

    @router.post("/resume", responses=UNREACHABLE)
    async def resume(asked: Resumption | None = None, policy_version: str | None = None) -> InferenceStatus:
        """Generate again."""
        version = policy_version if asked is None or asked.policy_version is None else str(asked.policy_version)
        await control.resume(version)
        return InferenceStatus(paused=False, nodes=status())

    @router.get("/status")
    async def show() -> InferenceStatus:
        nodes = status()
        return InferenceStatus(paused=bool(nodes) and all(node.paused for node in nodes.values()), nodes=nodes)

    return router
