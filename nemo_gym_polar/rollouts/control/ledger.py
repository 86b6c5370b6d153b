# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks that have not ended, in memory as in the store: the store is written first, then the memory follows.

Where a write failed, nobody knows whether the database has it; so the memory is read again before anything else is
decided on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nemo_gym_polar.rollouts.cleanup import to_the_end
from nemo_gym_polar.rollouts.control import news
from nemo_gym_polar.rollouts.control.queue import Queue
from nemo_gym_polar.rollouts.control.records import EventRecord, SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.control.settle import Settled, settle
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.store import Store


@dataclass(slots=True)
class Group:
    """A task and the current attempt at each of its samples."""

    task: TaskRecord
    samples: dict[int, SessionRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """What was decided. Tasks and sessions that are known stand in `tasks` and `sessions`, new ones apart."""

    sessions: Sequence[SessionRecord] = ()
    new_sessions: Sequence[SessionRecord] = ()
    tasks: Sequence[TaskRecord] = ()
    new_tasks: Sequence[TaskRecord] = ()
    events: Sequence[EventRecord] = ()


class Ledger:
    """Callers decide and commit in a `turn`. `on_reload` is told when the memory was read again."""

    def __init__(self, store: Store, on_reload: Callable[[], None]) -> None:
        self.store = store
        self.on_reload = on_reload
        self.groups: dict[str, Group] = {}
        self.live: dict[str, SessionRecord] = {}
        self.placed: dict[str, dict[str, SessionRecord]] = {}  # by node, then by id
        self.queue = Queue()
        self._turn = asyncio.Lock()
        self._doubtful = False

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Nobody else decides meanwhile. Raises `StoreError` if the memory must be read again and can't."""
        async with self._turn:
            if self._doubtful:
                await self.load()
                self._doubtful = False
                self.on_reload()
            yield

    async def load(self) -> None:
        """What stands in the store: a service before this one left it, or a write that seemed to fail."""
        tasks, sessions = await self.store.open_tasks(), await self.store.open_sessions()
        self.live, self.placed, self.queue = {}, {}, Queue()
        self.groups = {task.task_id: Group(task) for task in tasks}
        for record in sessions:
            self._keep(record)

    async def commit(self, change: Change) -> list[SessionRecord]:
        """Store what was decided and all that follows from it; returns the sessions that change besides. Raises
        `StoreError`, and the memory is as it was."""
        return await to_the_end(self._commit(change))  # or a caller that is cancelled leaves the memory behind

    async def _commit(self, change: Change) -> list[SessionRecord]:
        groups = self._overlaid(change)
        settled = [settle(group.task, group.samples) for group in groups.values()]
        following = [record for one in settled for record in one.sessions]
        batch = self._batch(change, settled, following)
        self._doubtful = True
        await self.store.write(batch)
        self._doubtful = False
        news.warn(batch.tasks)
        self._apply([*batch.tasks, *batch.new_tasks], [*batch.sessions, *batch.new_sessions])
        return following

    def _overlaid(self, change: Change) -> dict[str, Group]:
        """The groups that are touched, as they will be."""
        records = (*change.sessions, *change.new_sessions)
        touched = {record.task_id for record in records} | {task.task_id for task in change.tasks}
        known = (self.groups[name] for name in touched & self.groups.keys())
        groups = {group.task.task_id: Group(group.task, dict(group.samples)) for group in known}
        for task in (*change.tasks, *change.new_tasks):
            groups.setdefault(task.task_id, Group(task)).task = task
        for record in records:
            if record.current and record.task_id in groups:
                groups[record.task_id].samples[record.sample] = record
        return groups

    def _batch(self, change: Change, settled: Sequence[Settled], following: Sequence[SessionRecord]) -> Batch:
        fresh = {task.task_id for task in change.new_tasks}
        added = {record.session_id for record in change.new_sessions}
        last = {record.session_id: record for record in (*change.new_sessions, *change.sessions, *following)}
        tasks = [one.task for one in settled]
        told = [*change.events, *self._news(last.values()), *self._task_news(tasks)]
        return Batch(
            new_tasks=[task for task in tasks if task.task_id in fresh],
            tasks=[task for task in tasks if task.task_id not in fresh and self._differs(task)],
            sessions=[record for name, record in last.items() if name not in added],
            new_sessions=[record for name, record in last.items() if name in added],
            events=told,
        )

    def _differs(self, task: TaskRecord) -> bool:
        known = self.groups.get(task.task_id)
        return known is None or known.task != task

    def _news(self, records: Iterable[SessionRecord]) -> Iterator[EventRecord]:
        """Changes of a session's stage or place, and attempts that are not the first."""
        for record in records:
            known = self.live.get(record.session_id)
            again = not record.status.final and (record.attempt > 1 or record.moves > 0)
            if (known.status, known.node_id) != (record.status, record.node_id) if known else again:
                yield news.session_event(record)

    def _task_news(self, tasks: Iterable[TaskRecord]) -> Iterator[EventRecord]:
        for task in tasks:
            known = self.groups.get(task.task_id)
            if known and known.task.state is not task.state:
                yield news.task_event(task)

    def _apply(self, tasks: Sequence[TaskRecord], sessions: Sequence[SessionRecord]) -> None:
        for task in tasks:
            self.groups.setdefault(task.task_id, Group(task)).task = task
        for record in sessions:
            self._keep(record)
        for task in tasks:
            if task.ended is not None:
                del self.groups[task.task_id]

    def _keep(self, record: SessionRecord) -> None:
        """Without its result, which can be large."""
        slim = record.model_copy(update={"result": None})
        group = self.groups.get(record.task_id)
        self._forget(record.session_id)
        if group is None or not record.current:
            return
        group.samples[record.sample] = slim
        if not record.status.final:
            self.live[record.session_id] = slim
            if record.node_id is None:
                self.queue.add(slim, group.task)
            else:
                self.placed.setdefault(record.node_id, {})[record.session_id] = slim

    def _forget(self, session_id: str) -> None:
        before = self.live.pop(session_id, None)
        self.queue.discard(session_id)
        if before and before.node_id is not None:
            del self.placed[before.node_id][session_id]
            if not self.placed[before.node_id]:
                del self.placed[before.node_id]

    def at(self, node_id: str) -> list[SessionRecord]:
        return list(self.placed.get(node_id, {}).values())
