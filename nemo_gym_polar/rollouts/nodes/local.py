# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node in this process: a gateway, its server, and the rollout service's stages.

Invariant: every session that was taken on is reported as ended, with its result, exactly once, however it ends.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence
from typing import Protocol

from nemo_gym_polar.forest.errors import ForestError
from nemo_gym_polar.gateway import Gateway, Server
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import Assignment, Load, NodeBusyError, NodeError, Report
from nemo_gym_polar.rollouts.nodes.outbox import Outbox
from nemo_gym_polar.rollouts.nodes.pressure import EnginePressure
from nemo_gym_polar.rollouts.plan import Plan, make_plan
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.sources import GatewaySessions, NamedSession
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus

logger = logging.getLogger(__name__)

STATUS = {
    Stage.QUEUED: SessionStatus.QUEUED,
    Stage.INIT: SessionStatus.INIT,
    Stage.READY: SessionStatus.READY,
    Stage.RUNNING: SessionStatus.RUNNING,
    Stage.FINISHED: SessionStatus.POSTRUN,
    Stage.POSTRUN: SessionStatus.POSTRUN,
}


class Weights(Protocol):
    """Whoever can hold back generations while the policy's weights change. Raises `NodeError` if it takes longer."""

    @property
    def paused(self) -> bool: ...

    @property
    def version(self) -> str | None: ...

    async def pause(self, seconds: float) -> None: ...

    async def resume(self, policy_version: str | None) -> None: ...


class LocalNode:
    def __init__(
        self,
        node_id: str,
        gateway: Gateway,
        server: Server,
        settings: RolloutSettings,
        *,
        weights: Weights | None = None,
    ) -> None:
        self._id = node_id
        self.settings = settings
        self.sessions = GatewaySessions(gateway, server, settings)
        self.service = RolloutService(self.sessions, settings)
        gateway.metrics.registry.register(self.service.metrics)
        self.weights = weights
        self.pressure = EnginePressure(gateway.mode.engine)
        self.draining = False
        self._outbox = Outbox()
        self._running: dict[str, asyncio.Task[SessionResult]] = {}

    @property
    def id(self) -> str:
        return self._id

    async def start(self, assignment: Assignment) -> None:
        name = assignment.session_id
        if name in self._outbox:
            return
        if self.draining or len(self._running) >= self.capacity or not self.has_room:
            raise NodeBusyError(f"node {self.id} takes no session now")
        plan = make_plan(assignment.request, self.settings.agent_timeout, self.settings.assets)
        self._outbox.put(name, SessionStatus.QUEUED)
        task = asyncio.create_task(self._run(assignment, plan))
        self._running[name] = task
        task.add_done_callback(lambda done: self._ended(assignment, done))

    async def _run(self, assignment: Assignment, plan: Plan) -> SessionResult:
        name = assignment.session_id
        source = NamedSession(self.sessions, name)
        result = await self.service.run_one(plan, assignment.sample, source, lambda stage: self._moved(name, stage))
        return result.model_copy(update={"session_id": name})  # one that never got to the gateway has none

    def _moved(self, name: str, stage: Stage) -> None:
        self._outbox.put(name, STATUS[stage])

    def _ended(self, assignment: Assignment, task: asyncio.Task[SessionResult]) -> None:
        del self._running[assignment.session_id]
        result = outcome(assignment, task)
        self._outbox.put(assignment.session_id, result.status, result)

    async def cancel(self, session_id: str) -> None:
        task = self._running.get(session_id)
        if task:
            task.cancel()  # again if need be: a stage whose time is up is being cancelled too, and goes on after it

    async def reports(self, after: int, wait: float) -> Sequence[Report]:
        return await self._outbox.after(after, wait)

    async def acknowledge(self, session_ids: Sequence[str]) -> None:
        self._outbox.forget(session_ids)

    async def load(self) -> Load:
        return Load(
            capacity=self.capacity if self.has_room else len(self._running),
            sessions=len(self._running),
            stages={str(stage): number for stage, number in self.service.pools.gauges.items()},
            pressure=await self.pressure.now(),
            draining=self.draining,
            paused=bool(self.weights and self.weights.paused),
            policy_version=self.weights.version if self.weights else None,
        )

    @property
    def capacity(self) -> int:
        """One session for every place of every stage."""
        own = self.settings
        return own.init_workers + own.ready_buffer + own.run_workers + own.postrun_workers

    @property
    def has_room(self) -> bool:
        """A session that can't be recorded only fails, and so would the next ones that came in its place."""
        journals = self.sessions.gateway.settings.journals
        return shutil.disk_usage(journals).free >= self.settings.min_free_disk

    async def drain(self) -> None:
        self.draining = True

    async def pause(self, seconds: float) -> None:
        await self._weights.pause(seconds)

    async def resume(self, policy_version: str | None = None) -> None:
        await self._weights.resume(policy_version)

    @property
    def _weights(self) -> Weights:
        if self.weights is None:
            raise NodeError(f"node {self.id} has nothing to pause: its engine's weights don't change")
        return self.weights

    async def close(self) -> None:
        """End every session and wait until all that they held is free."""
        self.draining = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def outcome(assignment: Assignment, task: asyncio.Task[SessionResult]) -> SessionResult:
    if task.cancelled():  # before its first step
        return failed(assignment, SessionStatus.CANCELLED, "cancelled")
    error = task.exception()
    if error is None:
        return task.result()
    if not isinstance(error, (RolloutError, ForestError, OSError)):
        logger.error("session %s broke", assignment.session_id, exc_info=error)
    return failed(assignment, SessionStatus.ERROR, str(error) or repr(error))


def failed(assignment: Assignment, status: SessionStatus, error: str) -> SessionResult:
    """The result of a session that got nowhere."""
    return SessionResult(
        session_id=assignment.session_id,
        task_id=assignment.request.task_id,
        sample=assignment.sample,
        status=status,
        error=error,
        metadata=dict(assignment.request.metadata),
    )
