# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes' side of the control plane: follow what they report, start and cancel sessions, notice their loss.

Invariants: a session is in the store as placed before its node is told to start it; a result is on disk and in the
store before its node is told to forget it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from nemo_gym_polar.rollouts.control.intake import Intake
from nemo_gym_polar.rollouts.control.ledger import Ledger, event
from nemo_gym_polar.rollouts.control.loss import after_loss
from nemo_gym_polar.rollouts.control.member import Member
from nemo_gym_polar.rollouts.control.placement import Places, tasks_by_node
from nemo_gym_polar.rollouts.control.records import SessionRecord
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeBusyError, NodeError, NodeLostError, Report
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.task import SessionStatus

logger = logging.getLogger(__name__)


class Nodes:
    def __init__(self, ledger: Ledger, settings: ControlSettings) -> None:
        self.ledger = ledger
        self.settings = settings
        self.members: dict[str, Member] = {}
        self.lock = asyncio.Lock()
        self.wake = asyncio.Event()
        self.intake = Intake(ledger, settings.directory, self.lock)
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("a part of the control plane ended", exc_info=error)
            self.intake.trouble = f"a part of the control plane ended: {error!r}; restart the service"

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def persist(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do what the control plane itself decided, again and again while the store refuses."""
        delay = self.settings.retry_first
        while True:
            try:
                await work()
            except StoreError as error:
                self.intake.refused(str(error))
                await asyncio.sleep(delay)
                delay = min(2 * delay, self.settings.retry_most)
            else:
                self.intake.trouble = None
                return

    # Following a node

    async def follow(self, member: Member) -> None:
        delay = self.settings.retry_first
        while True:
            try:
                await self._ask(member)
            except NodeLostError as error:
                await self.lose(member, f"node {member.id} is lost: {error}", for_good=True)
                return
            except NodeError as error:
                silent = time.monotonic() - member.answered
                if silent >= self.settings.node_timeout and not member.lost:
                    await self.lose(member, f"node {member.id} gave no answer for {silent:.0f} s: {error}")
            except (StoreError, RolloutError) as error:  # a full disk, most likely; the node keeps the results
                self.intake.refused(str(error))
            else:
                delay = self.settings.retry_first
                continue
            await asyncio.sleep(delay)
            delay = min(2 * delay, self.settings.retry_most)

    async def _ask(self, member: Member) -> None:
        if not member.attached:
            return await self._attach(member)
        wait = self.settings.report_wait
        reports = await member.call(member.node.reports(member.cursor, wait), wait)
        await self._take(member, reports)
        await self._refresh(member)
        return None

    async def _attach(self, member: Member) -> None:
        """Compare all that the node knows with what it should."""
        await self._refresh(member)
        expected = {record.session_id for record in self.ledger.at(member.id)} - member.starting
        reports = await member.call(member.node.reports(0, 0.0))
        await self._take(member, reports)
        unknown = expected - {report.session_id for report in reports}
        await self._give_up(member.id, unknown, f"node {member.id} came back without it")
        for record in self.ledger.at(member.id):
            if record.cancelling and record.session_id not in member.starting:
                await member.call(member.node.cancel(record.session_id))
        member.attached, member.lost = True, False
        self.wake.set()

    async def _refresh(self, member: Member) -> None:
        member.load = await member.call(member.node.load())
        member.busy = False
        self.wake.set()

    async def _take(self, member: Member, reports: Sequence[Report]) -> None:
        if not reports:
            return
        taken = await self.intake.take(member.id, reports)
        self.cancel_at_nodes(taken.cancel)
        for session_id in taken.strangers:
            await member.call(member.node.cancel(session_id))
        if taken.stored:
            await member.call(member.node.acknowledge(taken.stored))
        member.cursor = reports[-1].cursor

    # Placing

    async def place_forever(self) -> None:
        while True:
            await self.wake.wait()
            self.wake.clear()
            await self.persist(self._place)

    async def _place(self) -> None:
        async with self.lock:
            placed = self._choose()
            if not placed:
                return
            await self.ledger.commit(placed)
            for record in placed:
                self.members[str(record.node_id)].starting.add(record.session_id)
        for record in placed:
            self.spawn(self._start(self.members[str(record.node_id)], record))

    def _choose(self) -> list[SessionRecord]:
        tasks = tasks_by_node(self.ledger.live)
        limit = self.settings.max_pressure
        free = {
            name: member.free(tasks[name].total() if name in tasks else 0, limit)
            for name, member in self.members.items()
        }
        places = Places(free, {name: member.load.pressure for name, member in self.members.items()}, tasks)
        placed = []
        for session_id in self.ledger.queue.in_order() if any(free.values()) else ():
            record = self.ledger.live[session_id]
            node = places.take(record.task_id, self.settings.group_placement)
            if node is None:
                break
            placed.append(record.model_copy(update={"node_id": node, "updated": time.time()}))
        return placed

    async def _start(self, member: Member, record: SessionRecord) -> None:
        """Tell the node until it answers, is lost, or the session is no longer its own."""
        delay = self.settings.retry_first
        try:
            while (now := self.ledger.live.get(record.session_id)) and now.node_id == member.id:
                group = self.ledger.groups[record.task_id]
                assert group.task.request
                try:
                    work = Assignment(record.session_id, group.task.request, record.sample, record.attempt)
                    await member.call(member.node.start(work))
                    break
                except NodeBusyError:
                    member.busy = True
                    return await self.persist(partial(self._put_back, record.session_id))
                except RolloutError as error:
                    return await self.persist(partial(self._refuse, record.session_id, str(error)))
                except NodeError:
                    await asyncio.sleep(delay)
                    delay = min(2 * delay, self.settings.retry_most)
        finally:
            member.starting.discard(record.session_id)
        now = self.ledger.live.get(record.session_id)
        if now and now.cancelling:
            await self._cancel(member, record.session_id)
        return None

    async def _put_back(self, session_id: str) -> None:
        async with self.lock:
            record = self.ledger.live.get(session_id)
            if record:
                await self.ledger.commit([record.model_copy(update={"node_id": None})])

    async def _refuse(self, session_id: str, error: str) -> None:
        async with self.lock:
            record = self.ledger.live.get(session_id)
            if record:
                ended = {"status": SessionStatus.ERROR, "error": error, "updated": time.time()}
                self.cancel_at_nodes(await self.ledger.commit([record.model_copy(update=ended)]))

    # Cancelling

    def cancel_at_nodes(self, records: Sequence[SessionRecord]) -> None:
        """Those whose start is under way are cancelled after it."""
        for record in records:
            member = self.members.get(record.node_id or "")
            if member and not record.status.final and record.session_id not in member.starting:
                self.spawn(self._cancel(member, record.session_id))

    async def _cancel(self, member: Member, session_id: str) -> None:
        delay = self.settings.retry_first
        while session_id in self.ledger.live and not member.lost:
            with contextlib.suppress(NodeError):
                return await member.call(member.node.cancel(session_id))
            await asyncio.sleep(delay)
            delay = min(2 * delay, self.settings.retry_most)
        return None

    async def forget(self, member: Member, session_id: str) -> None:
        """End a session that was given up, if its node still answers."""
        with contextlib.suppress(NodeError):
            await member.call(member.node.cancel(session_id))

    # Losing

    async def lose(self, member: Member, reason: str, *, for_good: bool = False) -> None:
        logger.warning("%s", reason)
        member.lost, member.attached, member.cursor = True, False, 0
        if for_good and self.members.get(member.id) is member:
            del self.members[member.id]
        await self.give_up_all(member.id, reason)

    async def give_up_all(self, node_id: str, reason: str) -> None:
        await self._give_up(node_id, None, reason)

    async def _give_up(self, node_id: str, session_ids: set[str] | None, reason: str) -> None:
        await self.persist(partial(self._replace, node_id, session_ids, reason))
        self.wake.set()

    async def _replace(self, node_id: str, session_ids: set[str] | None, reason: str) -> None:
        async with self.lock:
            lost = [
                record for record in self.ledger.at(node_id) if session_ids is None or record.session_id in session_ids
            ]
            outcomes = [after_loss(record, reason, self.settings) for record in lost]
            told = [event("node.lost", node_id=node_id, data={"reason": reason})] if session_ids is None else []
            if not lost and not told:
                return
            new = [replacement for _, replacement in outcomes if replacement]
            following = await self.ledger.commit([given_up for given_up, _ in outcomes], new, events=told)
            self.cancel_at_nodes(following)
