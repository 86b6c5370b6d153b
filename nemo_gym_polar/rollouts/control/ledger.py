# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks that have not ended, in memory as in the store: the store is written first, then the memory follows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nemo_gym_polar.rollouts.control.queue import Queue
from nemo_gym_polar.rollouts.control.records import EventRecord, SessionRecord, TaskRecord, TaskState
from nemo_gym_polar.rollouts.control.settle import settle
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.store import Store


@dataclass(slots=True)
class Group:
    """A task and the current attempt at each of its samples."""

    task: TaskRecord
    samples: dict[int, SessionRecord] = field(default_factory=dict)


class Ledger:
    """Callers decide and commit under one lock; between a commit and the memory's change nothing else runs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.groups: dict[str, Group] = {}
        self.live: dict[str, SessionRecord] = {}
        self.queue = Queue()

    async def load(self) -> None:
        """What a service before this one left."""
        self.groups = {task.task_id: Group(task) for task in await self.store.open_tasks()}
        for record in await self.store.open_sessions():
            self._keep(record)

    async def commit(
        self,
        changed: Sequence[SessionRecord] = (),
        new: Sequence[SessionRecord] = (),
        *,
        tasks: Sequence[TaskRecord] = (),
        new_tasks: Sequence[TaskRecord] = (),
        events: Sequence[EventRecord] = (),
    ) -> list[SessionRecord]:
        """Store what changed and all that follows from it; returns the sessions that changed besides. Raises
        `StoreError` with everything as it was."""
        touched = {record.task_id for record in (*changed, *new)} | {task.task_id for task in tasks}
        groups = {name: Group(group.task, dict(group.samples)) for name, group in self._touched(touched, new_tasks)}
        for task in tasks:
            groups[task.task_id].task = task
        for record in (*changed, *new):
            if record.current and record.task_id in groups:
                groups[record.task_id].samples[record.sample] = record
        settled = {name: settle(group.task, group.samples) for name, group in groups.items()}
        following = [record for one in settled.values() for record in one.sessions]
        last = {record.session_id: record for record in (*changed, *new, *following)}
        added = {record.session_id for record in new}
        fresh = {task.task_id for task in new_tasks}
        batch = Batch(
            new_tasks=[settled[name].task for name in fresh],
            tasks=[one.task for name, one in settled.items() if name not in fresh],
            sessions=[record for record in last.values() if record.session_id not in added],
            new_sessions=[last[record.session_id] for record in new],
            events=[*events, *self._events([*changed, *following], [one.task for one in settled.values()])],
        )
        await self.store.write(batch)
        for one in settled.values():
            self._apply(one.task)
        for record in (*batch.sessions, *batch.new_sessions):
            self._keep(record)
        for one in settled.values():
            if one.task.ended is not None:
                self.groups.pop(one.task.task_id, None)
        return following

    def _touched(self, names: Iterable[str], new: Sequence[TaskRecord]) -> list[tuple[str, Group]]:
        known = [(name, self.groups[name]) for name in names if name in self.groups]
        return [*known, *((task.task_id, Group(task)) for task in new)]

    def _apply(self, task: TaskRecord) -> None:
        self.groups.setdefault(task.task_id, Group(task)).task = task

    def _keep(self, record: SessionRecord) -> None:
        slim = record.model_copy(update={"result": None})
        group = self.groups.get(record.task_id)
        if group is None or not record.current or record.status.final:
            self.live.pop(record.session_id, None)
            self.queue.discard(record.session_id)
        else:
            self.live[record.session_id] = slim
            if record.node_id is None:
                self.queue.add(slim, group.task)
            else:
                self.queue.discard(record.session_id)
        if group is not None and record.current:
            group.samples[record.sample] = slim

    def _events(self, sessions: Sequence[SessionRecord], tasks: Sequence[TaskRecord]) -> list[EventRecord]:
        told = [session_event(record) for record in sessions if self._is_news(record)]
        return told + [
            event(f"task.{task.state}", task_id=task.task_id, data=counters(task))
            for task in tasks
            if task.state is not TaskState.RUNNING and self._state(task.task_id) is not task.state
        ]

    def _is_news(self, record: SessionRecord) -> bool:
        known = self.live.get(record.session_id)
        return known is None or (known.status, known.node_id) != (record.status, record.node_id)

    def _state(self, task_id: str) -> TaskState | None:
        group = self.groups.get(task_id)
        return group.task.state if group else None

    def at(self, node_id: str) -> list[SessionRecord]:
        return [record for record in self.live.values() if record.node_id == node_id]


def event(kind: str, **fields: Any) -> EventRecord:
    """Not numbered yet."""
    return EventRecord(id=0, time=time.time(), kind=kind, **fields)


def session_event(record: SessionRecord) -> EventRecord:
    names = ("sample", "attempt", "reward", "error", "lost", "current", "usable")
    data = {name: value for name in names if (value := getattr(record, name)) is not None}
    placed = record.status == "QUEUED" and record.node_id is not None
    kind = "session.placed" if placed else f"session.{record.status.lower()}"
    return event(kind, task_id=record.task_id, session_id=record.session_id, node_id=record.node_id, data=data)


def counters(task: TaskRecord) -> dict[str, Any]:
    names = ("total_sessions", "ended_sessions", "usable_sessions", "selected_samples", "error")
    return {name: value for name in names if (value := getattr(task, name)) is not None}
