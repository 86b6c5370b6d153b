# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Gives waiting sessions to nodes, and ends sessions there.

Invariant: a session is in the store as placed before its node is told to start it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial

from nemo_gym_polar.rollouts.control.ledger import Change
from nemo_gym_polar.rollouts.control.member import Member
from nemo_gym_polar.rollouts.control.placement import Places, tasks_by_node
from nemo_gym_polar.rollouts.control.records import SessionRecord
from nemo_gym_polar.rollouts.control.roster import Roster
from nemo_gym_polar.rollouts.control.settle import cancelled
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeBusyError, NodeError
from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest


class Placing:
    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self.ledger = roster.ledger
        self.settings = roster.settings

    async def forever(self) -> None:
        while True:
            await self.roster.wake.wait()
            self.roster.wake.clear()
            await self.roster.persist(self._place)

    async def _place(self) -> None:
        async with self.ledger.turn():
            placed = self._choose()
            if not placed:
                return
            starting = {name: member.starting for name, member in self.roster.members.items()}
            for record in placed:
                starting[str(record.node_id)].add(record.session_id)
            try:
                await self.ledger.commit(Change(sessions=placed))
            except BaseException:
                for record in placed:
                    starting[str(record.node_id)].discard(record.session_id)
                raise
            for record in placed:
                request = self.ledger.groups[record.task_id].task.request
                assert request  # a task without one has no sessions
                self.roster.spawn(self._start(record, request, starting[str(record.node_id)]))

    def _choose(self) -> list[SessionRecord]:
        places = self._places()
        placed = []
        for session_id in self.ledger.queue.first(sum(places.free.values())):
            record = self.ledger.live[session_id]
            node = places.take(record.task_id, self.settings.group_placement)
            assert node  # there are as many places as sessions
            placed.append(record.model_copy(update={"node_id": node, "updated": time.time()}))
        return placed

    def _places(self) -> Places:
        tasks = tasks_by_node(self.ledger.placed)
        free = {
            name: member.free(tasks[name].total() if name in tasks else 0, self.settings.max_pressure)
            for name, member in self.roster.members.items()
        }
        return Places(free, {name: member.load.pressure for name, member in self.roster.members.items()}, tasks)

    # Starting

    async def _start(self, record: SessionRecord, request: TaskRequest, starting: set[str]) -> None:
        try:
            await self._tell(Assignment(record.session_id, request, record.sample, record.attempt), record)
        finally:
            starting.discard(record.session_id)
        now = self.ledger.live.get(record.session_id)
        if now and now.cancelling:
            self.cancel([now])

    async def _tell(self, work: Assignment, record: SessionRecord) -> None:
        """Until the node answers, is lost, or the session is not to run there any more."""
        backoff = self.roster.backoff()
        while member := self._due(record):
            try:
                return await member.call(member.node.start(work))
            except NodeBusyError:
                member.busy = True
                return await self.roster.persist(partial(self._change, record.session_id, {"node_id": None}))
            except RolloutError as error:
                refused = {"status": SessionStatus.ERROR, "error": str(error)}
                return await self.roster.persist(partial(self._change, record.session_id, refused))
            except NodeError:
                await backoff.wait()
        return None

    def _due(self, record: SessionRecord) -> Member | None:
        now = self.ledger.live.get(record.session_id)
        due = now is not None and now.node_id == record.node_id and not now.cancelling
        return self.roster.members.get(str(record.node_id)) if due else None

    async def _change(self, session_id: str, update: Mapping[str, object]) -> None:
        async with self.ledger.turn():
            record = self.ledger.live.get(session_id)
            if record:
                changed = record.model_copy(update={**update, "updated": time.time()})
                if changed.cancelling and not changed.status.final:
                    changed = cancelled(changed, changed.cancelling)  # no node has it that could end it
                self.cancel(await self.ledger.commit(Change(sessions=[changed])))
        self.roster.wake.set()

    # Cancelling

    def cancel(self, records: Iterable[SessionRecord]) -> None:
        """At the nodes that have them. One whose start is under way is cancelled after it."""
        for record in records:
            member = self.roster.members.get(record.node_id or "")
            if member and not record.status.final and record.session_id not in member.starting:
                self.roster.spawn(self._cancel(member, record.session_id))

    async def _cancel(self, member: Member, session_id: str) -> None:
        """A node that never had it doesn't report it either; that is found when the two are compared."""
        backoff = self.roster.backoff()
        while session_id in self.ledger.live and not member.lost:
            try:
                return await member.call(member.node.cancel(session_id))
            except NodeError:
                await backoff.wait()
        return None
