# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What became of callbacks."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from nemo_gym_polar.rollouts.api.tasks import UNKNOWN
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.store.callbacks import CallbackRecord, CallbackStore


class CallbackList(BaseModel):
    task_id: str
    callbacks: list[CallbackRecord]


def make_router(control: Coordinator) -> APIRouter:
    router = APIRouter(tags=["callbacks"])
    store = CallbackStore(control.store)

    @router.get("/tasks/{task_id:path}/callbacks", responses=UNKNOWN)
    async def callbacks(task_id: str) -> CallbackList:
        """Every callback of a task: pending, delivered, or given up with the last error."""
        await control.task(task_id)
        return CallbackList(task_id=task_id, callbacks=await store.of_task(task_id))

    return router
