# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks in the store: what is to be told to whom, until it was or nobody listens."""

from __future__ import annotations

from enum import StrEnum

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict

from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.store.tables import callbacks, cursors

CURSOR = "callbacks"


class CallbackState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


class CallbackRecord(BaseModel):
    """`id` is the number of the event that it tells of; without a `session_id` it tells of the task's end. Times are
    Unix seconds."""

    model_config = ConfigDict(frozen=True)

    id: int
    task_id: str
    session_id: str | None
    url: str
    state: CallbackState
    attempts: int
    created: float
    due: float
    error: str | None = None


class CallbackStore:
    def __init__(self, store: Store) -> None:
        self.store = store

    async def cursor(self) -> int:
        """The last event that was looked at."""
        query = sa.select(cursors.c.event).where(cursors.c.name == CURSOR)
        async with self.store.reading() as connection:
            return await connection.scalar(query) or 0

    async def add(self, records: list[CallbackRecord], cursor: int) -> None:
        """Together, so that no event is told of twice from here, nor forgotten."""
        async with self.store.writing() as connection:
            if records:
                await connection.execute(sa.insert(callbacks), [record.model_dump() for record in records])
            await connection.execute(sa.delete(cursors).where(cursors.c.name == CURSOR))
            await connection.execute(sa.insert(cursors), [{"name": CURSOR, "event": cursor}])

    async def change(self, record: CallbackRecord) -> None:
        row = record.model_dump(include={"state", "attempts", "due", "error"})
        async with self.store.writing() as connection:
            await connection.execute(sa.update(callbacks).where(callbacks.c.id == record.id).values(row))

    async def pending(self, limit: int) -> list[CallbackRecord]:
        """Those that are due first."""
        query = sa.select(callbacks).where(callbacks.c.state == CallbackState.PENDING).order_by(callbacks.c.due)
        return await self._rows(query.limit(limit))

    async def of_task(self, task_id: str) -> list[CallbackRecord]:
        return await self._rows(sa.select(callbacks).where(callbacks.c.task_id == task_id).order_by(callbacks.c.id))

    async def counts(self) -> dict[CallbackState, int]:
        query = sa.select(callbacks.c.state, sa.func.count()).group_by(callbacks.c.state)
        async with self.store.reading() as connection:
            return {CallbackState(state): count for state, count in await connection.execute(query)}

    async def retried(self) -> int:
        """Pending ones that failed before."""
        failed = (callbacks.c.state == CallbackState.PENDING, callbacks.c.attempts > 0)
        async with self.store.reading() as connection:
            return await connection.scalar(sa.select(sa.func.count()).select_from(callbacks).where(*failed)) or 0

    async def _rows(self, query: sa.Select[tuple[object, ...]]) -> list[CallbackRecord]:
        async with self.store.reading() as connection:
            return [CallbackRecord(**row._mapping) for row in await connection.execute(query)]
