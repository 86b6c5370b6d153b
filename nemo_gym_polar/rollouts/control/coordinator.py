# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The control plane: takes tasks, places their sessions on nodes, keeps what comes of them.

async with Store("sqlite:///run/polar.db") as store, Coordinator(store, ControlSettings(directory=run)) as control:
    await control.add_node(node, kind="local")
    await control.submit(TaskRequest(task_id="one", instruction="Fix the test.", num_samples=8))

Invariants: what `submit` returned is in the store; every sample ends exactly once; no sample has two current attempts.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from nemo_gym_polar.rollouts.control.errors import (
    BackPressureError,
    NoTracesError,
    TaskConflictError,
    UnknownSessionError,
    UnknownTaskError,
)
from nemo_gym_polar.rollouts.control.fleet import LOCAL, Connect, Fleet
from nemo_gym_polar.rollouts.control.following import Following
from nemo_gym_polar.rollouts.control.ledger import Change
from nemo_gym_polar.rollouts.control.loss import new_session_id
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
from nemo_gym_polar.rollouts.nodes.base import Node
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest

__all__ = ["LOCAL", "Coordinator"]

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
        connect: Connect | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.roster = Roster(store, settings)
        self.ledger = self.roster.ledger
        self.placing = Placing(self.roster)
        self.following = Following(self.roster, self.placing)
        self.fleet = Fleet(self.roster, self.following, connect)

    async def __aenter__(self) -> Self:
        """Raises `StoreError` if the store can't be read."""
        await self.ledger.load()
        await self.fleet.recover()
        self.roster.spawn(self.placing.forever())
        self.roster.wake.set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.roster.stop()

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
        return await self.fleet.add(node, kind=kind, url=url, metadata=metadata)

    def nodes(self) -> list[NodeRecord]:
        """Those of before that have not come back yet are there as lost."""
        return self.fleet.records()

    async def drain(self, node_id: str) -> NodeRecord:
        """The node takes no more sessions. Raises `NodeError` if it can't be told; it gets none all the same."""
        return await self.fleet.drain(node_id)

    async def remove(self, node_id: str) -> None:
        """Forget a node; sessions that it still has are given up, as if it were lost."""
        await self.fleet.remove(node_id)

    async def pause(self, seconds: float) -> None:
        """Hold back generations on every node until none is in flight. Raises `NodeError` naming those that refused;
        the others stay paused, and so does a node that comes before `resume`."""
        await self.fleet.pause(seconds)

    async def resume(self, policy_version: str | None = None) -> None:
        """Generate again on every node, with weights of this version from here on."""
        await self.fleet.resume(policy_version)

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
