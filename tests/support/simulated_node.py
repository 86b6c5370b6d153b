# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node without a gateway: its sessions go from stage to stage when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from nemo_gym_polar.rollouts.nodes.base import Assignment, Load, NodeError, NodeLostError, Report
from nemo_gym_polar.rollouts.nodes.outbox import Outbox
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus


class SimulatedNode:
    """`silent`: it answers nothing. `dead`: nor ever will. `deaf`: starts come through, their answers do not.

    `started` has every session that ever began here, in order.
    """

    def __init__(self, node_id: str = "n1", capacity: int = 4) -> None:
        self._id = node_id
        self.capacity = capacity
        self.outbox = Outbox()
        self.running: dict[str, Assignment] = {}
        self.started: list[Assignment] = []
        self.acknowledged: list[str] = []
        self.silent = self.dead = self.deaf = self.draining = False
        self.refusal: Exception | None = None
        self.pressure: float | None = None
        self.metadata: dict[str, Any] = {}  # of the results to come
        self.first_prompt: str | None = None  # the same
        self.names: str | None = None  # what results call their session, if not by its id
        self.paused: list[float] = []
        self.held = False  # paused now
        self.versions: list[str | None] = []
        self.on_start: Callable[[Assignment], None] | None = None

    @property
    def id(self) -> str:
        return self._id

    def check(self) -> None:
        if self.dead:
            raise NodeLostError("it is dead")
        if self.silent:
            raise NodeError("it is silent")

    async def start(self, assignment: Assignment) -> None:
        self.check()
        if self.refusal:
            raise self.refusal
        name = assignment.session_id
        if name not in self.outbox:
            self.running[name] = assignment
            self.started.append(assignment)
            self.outbox.put(name, SessionStatus.QUEUED)
            if self.on_start:
                self.on_start(assignment)
        if self.deaf:
            raise NodeError("the answer was lost")

    async def cancel(self, session_id: str) -> None:
        self.check()
        if session_id in self.running:
            self.end(session_id, SessionStatus.CANCELLED)

    async def reports(self, after: int, wait: float) -> Sequence[Report]:
        self.check()
        found = await self.outbox.after(after, wait)
        self.check()
        return found

    async def acknowledge(self, session_ids: Sequence[str]) -> None:
        self.check()
        self.acknowledged += session_ids
        self.outbox.forget(session_ids)

    async def load(self) -> Load:
        self.check()
        version = next((name for name in reversed(self.versions) if name is not None), None)
        held = {"paused": self.held, "policy_version": version}
        return Load(self.capacity, len(self.running), pressure=self.pressure, draining=self.draining, **held)

    async def drain(self) -> None:
        self.check()
        self.draining = True

    async def pause(self, seconds: float) -> None:
        self.check()
        self.paused.append(seconds)
        self.held = True

    async def resume(self, policy_version: str | None = None) -> None:
        self.check()
        self.versions.append(policy_version)
        self.held = False

    async def close(self) -> None:
        await asyncio.sleep(0)

    def left_behind(self) -> SimulatedNode:
        """Begin anew with nothing; what there was until now, for whoever counts."""
        before = SimulatedNode(self.id, self.capacity)
        before.dead, before.started, before.acknowledged = True, self.started, self.acknowledged
        self.outbox, self.running, self.started, self.acknowledged = Outbox(), {}, [], []
        return before

    def move(self, session_id: str, status: SessionStatus) -> None:
        self.outbox.put(session_id, status)

    def end(self, session_id: str, status: SessionStatus = SessionStatus.COMPLETED, reward: float = 1.0) -> None:
        work = self.running.pop(session_id)
        result = SessionResult(
            session_id=self.names or session_id,
            task_id=work.request.task_id,
            sample=work.sample,
            status=status,
            reward=reward,
            metadata=self.metadata,
            first_prompt=self.first_prompt,
        )
        self.outbox.put(session_id, status, result)
