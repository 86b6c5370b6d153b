# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The evaluator's own sandbox, made while the harness runs in another.

It takes a place of the prewarm pool while it is made, and none of a session's. It has no way to the gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nemo_gym_polar.rollouts.plan import Plan
from nemo_gym_polar.rollouts.sandbox import furnish
from nemo_gym_polar.rollouts.stages import Track
from nemo_gym_polar.runtimes.base import Runtime


class Prewarm:
    """`begin`, then `take` when it is needed, and `release` in any case. Times go to the session's track."""

    def __init__(self, plan: Plan, track: Track, seconds_left: Callable[[], float]) -> None:
        self.plan = plan
        self.track = track
        self.seconds_left = seconds_left
        self.runtime: Runtime | None = None
        self.task: asyncio.Task[Runtime] | None = None
        self.restarts = 0

    def begin(self) -> None:
        self.task = asyncio.create_task(self.make())

    async def make(self) -> Runtime:
        with self.track.measure("evaluator_prewarm_queue"):
            await self.track.pools.prewarm.acquire(self.plan.priority)
        try:
            with self.track.measure("evaluator_prewarm"):
                runtime = self.runtime = self.plan.evaluator_runtime()
                files = self.plan.files(runtime)
                await furnish(runtime, files, self.plan.eval_prepare, self.seconds_left, Track(self.track.pools))
                return runtime
        finally:
            self.track.pools.prewarm.release()

    async def take(self) -> Runtime:
        """A sandbox that answers; raises `SandboxError` if it can't be made."""
        assert self.task
        with self.track.measure("evaluator_wait"):
            runtime = await asyncio.shield(self.task)
            if not await runtime.alive():  # it died while it waited
                self.restarts += 1
                await runtime.stop()
                runtime = await self.make()
        return runtime

    async def release(self) -> None:
        if self.task:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        runtime, self.runtime = self.runtime, None
        if runtime:
            await runtime.stop()
