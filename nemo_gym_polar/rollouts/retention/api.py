# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Removal when it is asked for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.retention.pruned import Pruned
from nemo_gym_polar.rollouts.retention.pruning import Pruner
from nemo_gym_polar.rollouts.retention.settings import Bounds


def make_router(control: Coordinator) -> APIRouter:
    router = APIRouter(tags=["retention"])
    pruner = Pruner(control)

    @router.post("/admin/prune")
    async def prune(
        bounds: Bounds, dry_run: Annotated[bool, Query(description="only say what would be removed")] = False
    ) -> Pruned:
        """Remove ended tasks beyond these bounds, with their sessions, events and files. A callback that was not
        delivered keeps its task."""
        if not bounds.bounded:
            raise HTTPException(422, "nothing says what to keep: give keep_days or keep_tasks")
        return await pruner.prune(bounds, dry_run=dry_run)

    return router
