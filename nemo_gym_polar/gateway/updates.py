# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Weight updates over HTTP, for a gateway that runs by itself. Every route wants the admin token as its bearer.

A trainer pauses, replaces the engine's weights, and resumes with their version. To update in flight it leaves the
pause out, and says the version as soon as the engine has it.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel

from nemo_gym_polar.gateway.access import bearer
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.weights import NotDrainedError


class InferenceState(BaseModel):
    """`policy_version` is what was announced last, else what the engine named last."""

    paused: bool
    policy_version: str | None
    generating: int


def update_router(gateway: Gateway, *, admin_token: str | None) -> APIRouter:
    router = APIRouter(prefix="/admin/inference", dependencies=[bearer(admin_token)])

    @router.get("/status")
    async def status() -> InferenceState:
        weights = gateway.weights
        return InferenceState(
            paused=weights.paused, policy_version=weights.version, generating=weights.generations.number
        )

    @router.post("/pause")
    async def pause(timeout_seconds: Annotated[float, Query(gt=0)] = 300.0) -> InferenceState:
        """Answers when no generation is in flight; 504, and all goes on, if that takes too long."""
        try:
            await gateway.pause(timeout_seconds)
        except NotDrainedError as error:
            raise HTTPException(504, str(error)) from None
        return await status()

    @router.post("/resume")
    async def resume(
        policy_version: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
    ) -> InferenceState:
        gateway.resume(policy_version)
        return await status()

    return router
