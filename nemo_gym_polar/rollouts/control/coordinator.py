# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The control plane: takes tasks, places their sessions on nodes, keeps what comes of them.

async with Store("sqlite:///run/polar.db") as store, Coordinator(store, ControlSettings(directory=run)) as control:
    await control.add_node(node, kind="local")
    await control.submit(TaskRequest(task_id="one", instruction="Fix the test.", num_samples=8))

Invariants: what `submit` returned is in the store; every sample ends exactly once; no sample has two current attempts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from nemo_gym_polar.rollouts.control.errors import (
    BackPressureError,
    NoTracesError,
    TaskConflictError,
    UnknownNodeError,
    UnknownSessionError,
    UnknownTaskError,
)
from nemo_gym_polar.rollouts.control.following import Following
from nemo_gym_polar.rollouts.control.ledger import Change
from nemo_gym_polar.rollouts.control.loss import new_session_id
from nemo_gym_polar.rollouts.control.member import DRAINING, LOST, Member
from nemo_gym_polar.rollouts.control.news import event
from nemo_gym_polar.rollouts.control.placing import Placing
from nemo_gym_polar.rollouts.control.records import (
    EventRecord,
    NodeRecord,
    ServiceStatus,
    SessionRecord,
    TaskRecord,
    TaskState,
)
from nemo_gym_polar.rollouts.control.roster import Roster
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.control.settle import cancelled
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import Node, NodeError
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest

logger = logging.getLogger(__name__)

LOCAL = "local"  # the kind of a node that lives in the service's own process, and dies with it
PAGE = 500


class Coordinator:
    """Enter it to recover what a service before left; leaving it stops its loops and ends no session.

    `connect` makes a node again from its record, so that a restarted service finds its nodes by itself; it returns None
    for one that will come by itself.
    """

    def __init__(
        self,
        store: Store,
        settings: ControlSettings,
        connect: Callable[[NodeRecord], Awaitable[Node | None]] | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.connect = connect
        self.roster = Roster(store, settings)
        self.ledger = self.roster.ledger
        self.placing = Placing(self.roster)
        self.following = Following(self.roster, self.placing)
        self._absent: dict[str, NodeRecord] = {}  # nodes of before that have not come back yet

    async def __aenter__(self) -> Self:
        """Raises `StoreError` if the store can't be read."""
        await self.ledger.load()
        known = {record.node_id: record for record in await self.store.nodes()}
        places = {record.node_id for record in self.ledger.live.values() if record.node_id is not None}
        gone = {name for name in {*known, *places} if name not in known or known[name].kind == LOCAL}
        self._absent = {name: record for name, record in known.items() if name not in gone}
        for node_id in sorted(gone):
            await self.following.replace(node_id, f"node {node_id} ended with the service")
        await self.store.write(Batch(gone_nodes=sorted(gone)))
        for record in self._absent.values():
            self.roster.spawn(self._regain(record))
        self.roster.spawn(self.placing.forever())
        self.roster.wake.set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.roster.stop()

    async def _regain(self, record: NodeRecord) -> None:
        """A node of before: found again, or lost if it doesn't come in time."""
        node = await self._connected(record)
        if node is not None:
            return await self.roster.persist(partial(self._add_again, node, record))
        await asyncio.sleep(self.settings.node_timeout)
        if self._absent.pop(record.node_id, None):
            await self.following.give_up(record.node_id, f"node {record.node_id} did not come back")
            await self.roster.persist(partial(self._write, Batch(gone_nodes=[record.node_id])))
        return None

    async def _add_again(self, node: Node, record: NodeRecord) -> None:
        if record.node_id in self._absent:  # it has not come by itself meanwhile
            await self.add_node(node, kind=record.kind, url=record.url, metadata=record.metadata)

    async def _connected(self, record: NodeRecord) -> Node | None:
        try:
            return await self.connect(record) if self.connect else None
        except (NodeError, OSError) as error:
            logger.warning("node %s can't be reached: %s", record.node_id, error)
            return None

    async def _write(self, batch: Batch) -> None:
        await self.store.write(batch)

    # Tasks

    async def submit(self, request: TaskRequest) -> TaskRecord:
        """In the store before it returns; the same task again is the same record. Raises `TaskConflictError`,
        `BackPressureError`, `RolloutError` for a request that can't be kept, `StoreError`."""
        request = plain(request)
        async with self.ledger.turn():
            known = await self.store.task(request.task_id)
            if known is not None:
                return same_task(known, request)
            self._check_room(request)
            now = time.time()
            task = TaskRecord(
                task_id=request.task_id,
                state=TaskState.RUNNING,
                request=request,
                created=now,
                total_sessions=request.num_samples,
            )
            sessions = [first_attempt(task, sample) for sample in range(request.num_samples)]
            told = event("task.submitted", task_id=task.task_id, data={"sessions": len(sessions)})
            await self.ledger.commit(Change(new_sessions=sessions, new_tasks=[task], events=[told]))
        self.roster.wake.set()
        return task

    def _check_room(self, request: TaskRequest) -> None:
        waiting, most, more = len(self.ledger.queue), self.settings.max_waiting, request.num_samples
        if more > most:
            raise RolloutError(f"num_samples={more}: at most {most} sessions may wait here; ask for fewer samples")
        if waiting + more > most:
            after = self.settings.retry_after
            raise BackPressureError(f"{waiting} sessions wait and {most} may: submit again in {after:.0f} s", after)

    async def task(self, task_id: str) -> TaskRecord:
        found = await self.store.task(task_id)
        if found is None:
            raise UnknownTaskError(f"there is no task {task_id!r}")
        return found

    async def tasks(
        self,
        *,
        state: TaskState | None = None,
        harness: str | None = None,
        since: float | None = None,
        limit: int = 100,
    ) -> list[TaskRecord]:
        """The newest first; `since` is in Unix seconds."""
        return await self.store.tasks(state=state, harness=harness, since=since, limit=limit)

    async def cancel(self, task_id: str, *, register_if_missing: bool = False) -> TaskRecord:
        """End all sessions of a task; one that has ended stays as it is. `register_if_missing` keeps an unknown id from
        being submitted later."""
        async with self.ledger.turn():
            known = await self.store.task(task_id)
            if known is None and register_if_missing:
                return await self._never(task_id)
            if known is None:
                raise UnknownTaskError(f"there is no task {task_id!r}")
            if known.ended is not None:
                return known
            task = known.model_copy(update={"state": TaskState.CANCELLING})
            samples = self.ledger.groups[task_id].samples.values()
            ending = [cancelled(record, "cancelled") for record in samples if not record.status.final]
            await self.ledger.commit(Change(sessions=ending, tasks=[task]))
        self.placing.cancel(ending)
        return await self.task(task_id)

    async def _never(self, task_id: str) -> TaskRecord:
        now = time.time()
        gone = TaskRecord(
            task_id=task_id, state=TaskState.CANCELLED, request=None, created=now, ended=now, total_sessions=0
        )
        told = event("task.cancelled", task_id=task_id)
        await self.store.write(Batch(new_tasks=[gone], events=[told]))
        return gone

    # Sessions

    async def sessions(self, task_id: str) -> list[SessionRecord]:
        """Every attempt at every sample, in the order of samples and attempts."""
        await self.task(task_id)
        return await self.store.sessions(task_id)

    async def session(self, session_id: str) -> SessionRecord:
        found = await self.store.session(session_id)
        if found is None:
            raise UnknownSessionError(f"there is no session {session_id!r}")
        return found

    async def traces(self, session_id: str) -> Path:
        """The file of a session's traces, one JSON object a line."""
        record = await self.session(session_id)
        if record.result_path is None:
            raise NoTracesError(f"session {session_id} is {record.status} and has no traces")
        return self.settings.directory / record.result_path

    async def cancel_session(self, session_id: str) -> SessionRecord:
        """End one session; its sample ends with it."""
        async with self.ledger.turn():
            live = self.ledger.live.get(session_id)
            if live:
                ending = cancelled(live, "cancelled")
                self.placing.cancel([ending, *await self.ledger.commit(Change(sessions=[ending]))])
        return await self.session(session_id)

    # Nodes

    async def add_node(
        self, node: Node, *, kind: str, url: str | None = None, metadata: dict[str, Any] | None = None
    ) -> NodeRecord:
        """Follow a node. One with the id of a known node takes that one's place, and its sessions where it has them."""
        member = Member(node, kind, url, metadata or {}, self.settings.call_timeout)
        before = self._absent.get(node.id)
        member.draining = before is not None and before.state == DRAINING
        await self.store.write(Batch(nodes=[member.record()], events=[event("node.added", node_id=node.id)]))
        self._absent.pop(node.id, None)
        known = self.roster.members.get(node.id)
        if known and known.task:
            known.task.cancel()
            member.starting = known.starting
        self.roster.members[node.id] = member
        member.task = self.roster.spawn(self.following.forever(member))
        return member.record()

    def nodes(self) -> list[NodeRecord]:
        """Those of before that have not come back yet are there as lost."""
        absent = [record.model_copy(update={"state": LOST}) for record in self._absent.values()]
        found = [*absent, *(member.record() for member in self.roster.members.values())]
        return sorted(found, key=lambda record: record.node_id)

    async def drain(self, node_id: str) -> NodeRecord:
        """The node takes no more sessions. Raises `NodeError` if it can't be told; it gets none all the same."""
        member = self._member(node_id)
        member.draining = True
        await member.call(member.node.drain())
        await self.store.write(Batch(nodes=[member.record()], events=[event("node.draining", node_id=node_id)]))
        return member.record()

    async def remove(self, node_id: str) -> None:
        """Forget a node; sessions that it still has are given up, as if it were lost."""
        member = self._member(node_id)
        if member.task:
            member.task.cancel()
        there = self.ledger.at(node_id)
        await self.following.lose(member, f"node {node_id} was removed")
        self.roster.spawn(self.following.forget(member, there))
        await self.store.write(Batch(gone_nodes=[node_id], events=[event("node.removed", node_id=node_id)]))

    def _member(self, node_id: str) -> Member:
        try:
            return self.roster.members[node_id]
        except KeyError:
            raise UnknownNodeError(f"there is no node {node_id!r}") from None

    async def pause(self, seconds: float) -> None:
        """Hold back generations on every node until none is in flight. Raises `NodeError` naming those that refused;
        the others stay paused, and so does a node that comes before `resume`."""
        self.roster.weights.paused = True
        await self._everywhere(lambda node: node.pause(seconds), seconds)

    async def resume(self, policy_version: str | None = None) -> None:
        """Generate again on every node, with weights of this version from here on."""
        weights = self.roster.weights
        weights.paused, weights.version = False, policy_version or weights.version
        await self._everywhere(lambda node: node.resume(policy_version), 0.0)

    async def _everywhere(self, work: Callable[[Node], Awaitable[None]], seconds: float) -> None:
        members = [member for member in self.roster.members.values() if not member.lost]
        calls = [member.call(work(member.node), seconds) for member in members]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        failed = [f"{member.id}: {error}" for member, error in zip(members, answers, strict=True) if error]
        if failed:
            raise NodeError("; ".join(failed))

    # The whole

    async def status(self) -> ServiceStatus:
        live = self.ledger.live.values()
        return ServiceStatus(
            time=time.time(),
            queue=self.ledger.queue.by_priority(),
            stages=dict(Counter(record.status for record in live)),
            nodes=dict(Counter(record.node_id for record in live if record.node_id)),
            tasks=await self.store.task_counts(),
            sessions=await self.store.session_counts(),
            unstored=sum(member.unstored for member in self.roster.members.values()),
            trouble=self.roster.trouble.text,
        )

    async def events(self, after: int = 0, *, task_id: str | None = None) -> AsyncIterator[EventRecord]:
        """What happened after the event of this number, then what happens, each once and in order."""
        while True:
            written = self.store.written
            page = await self.store.events(after, task_id=task_id, limit=PAGE)
            for found in page:
                after = found.id
                yield found
            if not page:
                await written.wait()


def plain(request: TaskRequest) -> TaskRequest:
    """As it comes back from the store. Raises `RolloutError` for what no store can hold."""
    if len(request.task_id) > 512 or not request.task_id.isprintable():
        raise RolloutError("task_id: give at most 512 printable characters")
    try:
        orjson.dumps(request.model_dump(mode="json"))
        return TaskRequest.model_validate_json(request.model_dump_json())
    except (TypeError, ValueError) as error:
        raise RolloutError(f"task {request.task_id} can't be kept as JSON: {' '.join(str(error).split())}") from None


def same_task(known: TaskRecord, request: TaskRequest) -> TaskRecord:
    if known.state in (TaskState.CANCELLED, TaskState.CANCELLING):
        raise TaskConflictError(f"task {request.task_id!r} was cancelled; submit it under another id")
    if known.request != request:
        raise TaskConflictError(f"task {request.task_id!r} is known with other content; give this one another id")
    return known


def first_attempt(task: TaskRecord, sample: int) -> SessionRecord:
    return SessionRecord(
        session_id=new_session_id(),
        task_id=task.task_id,
        sample=sample,
        attempt=1,
        status=SessionStatus.QUEUED,
        created=task.created,
        updated=task.created,
    )
