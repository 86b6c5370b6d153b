# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What can be asked of the store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from nemo_gym_polar.rollouts.control.records import (
    EventRecord,
    NodeRecord,
    SessionRecord,
    TaskRecord,
    TaskState,
)
from nemo_gym_polar.rollouts.store import rows
from nemo_gym_polar.rollouts.store.tables import events, nodes, sessions, tasks
from nemo_gym_polar.rollouts.task import SessionStatus

OPEN_TASKS = (str(TaskState.RUNNING), str(TaskState.CANCELLING))


class Reads(ABC):
    @abstractmethod
    def reading(self) -> AbstractAsyncContextManager[AsyncConnection]: ...

    async def task(self, task_id: str) -> TaskRecord | None:
        found = await self._rows(sa.select(tasks).where(tasks.c.task_id == task_id))
        return rows.read_task(found[0]) if found else None

    async def tasks(
        self,
        *,
        state: TaskState | None = None,
        harness: str | None = None,
        since: float | None = None,
        limit: int | None = 100,
    ) -> list[TaskRecord]:
        """The newest first; `since` bounds when they were made."""
        query = sa.select(tasks).order_by(tasks.c.created.desc(), tasks.c.task_id.desc()).limit(limit)
        if state is not None:
            query = query.where(tasks.c.state == str(state))
        if harness is not None:
            query = query.where(tasks.c.harness == harness)
        if since is not None:
            query = query.where(tasks.c.created >= since)
        return [rows.read_task(row) for row in await self._rows(query)]

    async def open_tasks(self) -> list[TaskRecord]:
        """Those that have not ended, oldest first."""
        query = sa.select(tasks).where(tasks.c.state.in_(OPEN_TASKS)).order_by(tasks.c.created)
        return [rows.read_task(row) for row in await self._rows(query)]

    async def session(self, session_id: str) -> SessionRecord | None:
        found = await self._rows(sa.select(sessions).where(sessions.c.session_id == session_id))
        return rows.read_session(found[0]) if found else None

    async def sessions(self, task_id: str) -> list[SessionRecord]:
        """Every attempt at every sample."""
        order = (sessions.c.sample, sessions.c.created, sessions.c.attempt)
        query = sa.select(sessions).where(sessions.c.task_id == task_id).order_by(*order)
        return [rows.read_session(row) for row in await self._rows(query)]

    async def open_sessions(self) -> list[SessionRecord]:
        """The current attempts of all tasks that have not ended, without their results."""
        columns = [column for column in sessions.c if column.name != "result"]
        query = sa.select(*columns).join(tasks).where(tasks.c.state.in_(OPEN_TASKS), sessions.c.current)
        return [rows.read_session(row) for row in await self._rows(query)]

    async def events(
        self, after: int = 0, *, task_id: str | None = None, limit: int | None = None
    ) -> list[EventRecord]:
        query = sa.select(events).where(events.c.id > after).order_by(events.c.id).limit(limit)
        if task_id is not None:
            query = query.where(events.c.task_id == task_id)
        return [rows.read_event(row) for row in await self._rows(query)]

    async def last_event(self) -> int:
        """The number of the newest event; 0 before the first."""
        ((number,),) = await self._rows(sa.select(sa.func.max(events.c.id)))
        return number or 0

    async def nodes(self) -> list[NodeRecord]:
        return [rows.read_node(row) for row in await self._rows(sa.select(nodes).order_by(nodes.c.node_id))]

    async def task_counts(self) -> dict[TaskState, int]:
        query = sa.select(tasks.c.state, sa.func.count()).group_by(tasks.c.state)
        return {TaskState(row[0]): row[1] for row in await self._rows(query)}

    async def session_counts(self) -> dict[SessionStatus, int]:
        """Of the attempts that count."""
        query = sa.select(sessions.c.status, sa.func.count()).where(sessions.c.current).group_by(sessions.c.status)
        return {SessionStatus(row[0]): row[1] for row in await self._rows(query)}

    async def _rows(self, query: sa.Select[*tuple[Any, ...]]) -> list[sa.Row[*tuple[Any, ...]]]:
        async with self.reading() as connection:
            return list((await connection.execute(query)).all())
