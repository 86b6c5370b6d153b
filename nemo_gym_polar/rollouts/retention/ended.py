# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Ended tasks in the store: which of them are beyond the bounds, and their removal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import sqlalchemy as sa

from nemo_gym_polar.rollouts.callbacks.delivery import SESSION_ENDS, TASK_ENDS
from nemo_gym_polar.rollouts.retention.settings import Bounds
from nemo_gym_polar.rollouts.store.callbacks import CURSOR, CallbackState
from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.store.tables import callbacks, cursors, events, sessions, tasks

DAY = 86400.0
Place = tuple[float, str]


@dataclass(frozen=True, slots=True)
class EndedTask:
    """`held`: somebody is still to be told of it."""

    task_id: str
    ended: float
    held: bool
    session_ids: Sequence[str]

    @property
    def place(self) -> Place:
        return self.ended, self.task_id


class EndedTasks:
    """Those that ended first come first; tasks that have not ended are none of them."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def newest_beyond(self, keep_tasks: int) -> Place | None:
        """The newest one that is not among the `keep_tasks` newest."""
        query = sa.select(tasks.c.ended, tasks.c.task_id).where(tasks.c.ended.is_not(None))
        query = query.order_by(tasks.c.ended.desc(), tasks.c.task_id.desc()).offset(keep_tasks).limit(1)
        async with self.store.reading() as connection:
            row = (await connection.execute(query)).first()
        return None if row is None else (row.ended, row.task_id)

    async def page(
        self, bounds: Bounds, now: float, beyond: Place | None, after: Place | None, limit: int
    ) -> list[EndedTask]:
        """Those beyond the bounds, after a place in their order."""
        conditions = [tasks.c.ended.is_not(None), sa.or_(sa.false(), *limits(bounds, now, beyond))]
        if after is not None:
            conditions.append(place() > sa.tuple_(*after))
        query = sa.select(tasks.c.task_id, tasks.c.ended, tasks.c.request, untold(bounds), unread()).where(*conditions)
        async with self.store.reading() as connection:
            rows = (await connection.execute(query.order_by(tasks.c.ended, tasks.c.task_id).limit(limit))).all()
            names = await self._sessions(connection, [row.task_id for row in rows])
        return [EndedTask(row.task_id, row.ended, is_held(row), names.get(row.task_id, ())) for row in rows]

    async def _sessions(self, connection: Any, task_ids: Sequence[str]) -> dict[str, list[str]]:
        query = sa.select(sessions.c.task_id, sessions.c.session_id).where(sessions.c.task_id.in_(task_ids))
        found: dict[str, list[str]] = {}
        for row in await connection.execute(query):
            found.setdefault(row.task_id, []).append(row.session_id)
        return found

    async def remove(self, task_ids: Sequence[str]) -> None:
        """With their sessions, callbacks and events."""
        async with self.store.writing() as connection:
            for table in (callbacks, events, sessions, tasks):
                await connection.execute(sa.delete(table).where(table.c.task_id.in_(task_ids)))

    async def remove_events(self, before: float) -> None:
        """Of nodes, and of tasks that are gone."""
        gone = ~sa.exists().where(tasks.c.task_id == events.c.task_id)
        async with self.store.writing() as connection:
            await connection.execute(sa.delete(events).where(events.c.time < before, gone))


def place() -> sa.Tuple:
    return sa.tuple_(tasks.c.ended, tasks.c.task_id)


def limits(bounds: Bounds, now: float, beyond: Place | None) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if bounds.keep_days is not None:
        found.append(tasks.c.ended < now - bounds.keep_days * DAY)
    if beyond is not None:
        found.append(place() <= sa.tuple_(*beyond))
    return found


def untold(bounds: Bounds) -> sa.Label[bool]:
    """A callback of the task was not delivered."""
    waits = [CallbackState.PENDING, *([] if bounds.given_up_callbacks else [CallbackState.GIVEN_UP])]
    ours = callbacks.c.task_id == tasks.c.task_id
    return sa.exists().where(ours, callbacks.c.state.in_(waits)).label("untold")


def unread() -> sa.Label[bool]:
    """An event of the task that may become a callback has not been looked at."""
    cursor = sa.select(cursors.c.event).where(cursors.c.name == CURSOR).scalar_subquery()
    ours = (events.c.task_id == tasks.c.task_id, events.c.kind.in_([*SESSION_ENDS, *TASK_ENDS]))
    return sa.exists().where(*ours, events.c.id > sa.func.coalesce(cursor, 0)).label("unread")


def is_held(row: sa.Row[*tuple[Any, ...]]) -> bool:
    calls = row.request is not None and orjson.loads(row.request).get("callback_url") is not None
    return bool(row.untold or (calls and row.unread))
