# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout service: takes tasks, runs their sessions through the stages, gives back groups.

async with RolloutService.over(gateway, server, RolloutSettings(directory=run)) as service:
    group = await service.run(TaskRequest(task_id="one", instruction="Fix the test.", num_samples=8))
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from nemo_gym_polar.gateway import Gateway, Server
from nemo_gym_polar.harnesses.base import Harness, HarnessError
from nemo_gym_polar.rollouts.cleanup import to_the_end
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.first_prompt import Mismatch, mismatches
from nemo_gym_polar.rollouts.plan import Plan, make_plan
from nemo_gym_polar.rollouts.results import write_result
from nemo_gym_polar.rollouts.session import SessionRun
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.sources import GatewaySessions, SessionSource
from nemo_gym_polar.rollouts.stage_metrics import StageMetrics
from nemo_gym_polar.rollouts.stages import Gauges, Pools, Stage
from nemo_gym_polar.rollouts.task import SessionResult, TaskRequest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The sessions of one task, in the order of their samples."""

    task_id: str
    sessions: Sequence[SessionResult]
    first_prompt_mismatches: Sequence[Mismatch] = ()


class RolloutService:
    """Many groups may run at once; they share the pools. `on_change` sees the number of sessions in each stage."""

    def __init__(
        self, source: SessionSource, settings: RolloutSettings, on_change: Callable[[Gauges], None] | None = None
    ) -> None:
        self.source = source
        self.settings = settings
        self.pools = Pools(settings, on_change)
        self.metrics = StageMetrics(self.pools)
        self.first_prompt_mismatches = 0
        self._installing = asyncio.Lock()
        self._running: dict[asyncio.Task[SessionResult], SessionRun] = {}

    @classmethod
    def over(
        cls,
        gateway: Gateway,
        server: Server,
        settings: RolloutSettings,
        on_change: Callable[[Gauges], None] | None = None,
    ) -> Self:
        """A service on a gateway in this process."""
        service = cls(GatewaySessions(gateway, server, settings), settings, on_change)
        gateway.metrics.registry.register(service.metrics)
        return service

    async def run(self, request: TaskRequest) -> GroupResult:
        """Run all samples of a task. Raises `RolloutError` if the task itself is wrong; a session that fails is a
        result with a status. Cancelling this call ends its sessions and frees what they hold."""
        plan = make_plan(request, self.settings.agent_timeout, self.settings.assets)
        await self._install(plan.harness)
        runs = [
            SessionRun(plan, sample, self.source, self.settings, self.pools) for sample in range(request.num_samples)
        ]
        tasks = [self._begin(run) for run in runs]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            raise_first(done)
            results = [ended(run, task) for run, task in zip(runs, tasks, strict=True)]
        except BaseException:
            await end(tasks)
            raise
        return self._group(request, runs, results)

    async def run_one(
        self, plan: Plan, sample: int, source: SessionSource, on_stage: Callable[[Stage], None]
    ) -> SessionResult:
        """One session by itself; its result is the caller's to keep. Cancelling this call ends the session, and gives
        its result as CANCELLED all the same. Raises `RolloutError` if its harness can't be installed."""
        run = SessionRun(plan, sample, source, self.settings, self.pools, on_stage)
        try:
            await self._install(plan.harness)
            return await run.run()
        except asyncio.CancelledError:
            run.cancelled = True
            return run.result()

    def cancel(self, task_id: str) -> int:
        """End the sessions of a task wherever they are; `run` then returns them as CANCELLED. How many there were."""
        found = [task for task, run in self._running.items() if run.plan.request.task_id == task_id]
        for task in found:
            self._running[task].cancelled = True
            task.cancel()
        return len(found)

    async def _install(self, harness: Harness) -> None:
        async with self._installing:
            try:
                if not await asyncio.to_thread(harness.installed):
                    logger.info("installing the harness %s", harness.name)
                    await asyncio.to_thread(harness.install)
            except HarnessError as error:
                raise RolloutError(str(error)) from error

    def _begin(self, run: SessionRun) -> asyncio.Task[SessionResult]:
        task = asyncio.create_task(self._session(run))
        self._running[task] = run
        task.add_done_callback(self._running.pop)
        return task

    async def _session(self, run: SessionRun) -> SessionResult:
        try:
            result = await run.run()
        except asyncio.CancelledError:
            if not run.cancelled:
                raise
            result = run.result()
        try:
            await to_the_end(self._keep(result))
        except asyncio.CancelledError:
            if not run.cancelled:
                raise
        return result

    async def _keep(self, result: SessionResult) -> None:
        if result.session_id:
            await asyncio.to_thread(write_result, self.settings.directory, result)

    def _group(self, request: TaskRequest, runs: Sequence[SessionRun], results: Sequence[SessionResult]) -> GroupResult:
        prompts = {result.session_id: run.collected.first_prompt for run, result in zip(runs, results, strict=True)}
        differing = mismatches(prompts)
        self.first_prompt_mismatches += len(differing)
        for mismatch in differing:
            logger.warning("task %s: %s", request.task_id, mismatch)
        return GroupResult(request.task_id, results, differing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end(list(self._running))


def raise_first(tasks: Iterable[asyncio.Task[SessionResult]]) -> None:
    """What one of them raised, so that the others need not be waited for."""
    for task in tasks:
        if not task.cancelled() and (error := task.exception()):
            raise error


def ended(run: SessionRun, task: asyncio.Task[SessionResult]) -> SessionResult:
    """Of one that was taken back before its first step, too."""
    return run.result() if run.cancelled and task.cancelled() else task.result()


async def end(tasks: Sequence[asyncio.Task[SessionResult]]) -> None:
    """Cancel and wait until everything that the tasks held is free."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
