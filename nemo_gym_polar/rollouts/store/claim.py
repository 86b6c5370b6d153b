# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One service, one store.

On SQLite the claim is a lock on a file beside the database, on PostgreSQL an advisory lock of the very connection that
writes: whoever loses the one can't write by the other. Both end with the process, however it ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from nemo_gym_polar.rollouts.store.errors import StoreInUseError

NUMBER = 0x706F6C6172  # the advisory lock's: "polar"
PATIENCE = "3s"  # the server may need a moment to see that the process before has ended
NOT_AVAILABLE = "55P03"  # PostgreSQL's code for a lock that was not to be had in time


class Claim:
    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._writer: AsyncConnection | None = None
        self._file: int | None = None

    async def writer(self) -> AsyncConnection:
        """The connection that writes; made, and the store claimed, where there is none or it broke. Raises
        `StoreInUseError` if somebody else has the store."""
        if self._writer is None or self._writer.invalidated:
            await self._forget()
            if self.engine.dialect.name == "sqlite":
                self._file = self._file or await asyncio.to_thread(lock_file, Path(f"{self.engine.url.database}.lock"))
                self._writer = await self.engine.connect()
            else:
                self._writer = await locked(await self.engine.connect())
        return self._writer

    async def close(self) -> None:
        await self._forget()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def _forget(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.invalidate()  # the pool would keep it, and the lock with it
            await writer.close()


def lock_file(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StoreInUseError(f"another service works with {path.with_suffix('')}; stop it, or name another") from None
    return descriptor


async def locked(connection: AsyncConnection) -> AsyncConnection:
    """The lock is the session's: it outlives the transaction in which it was taken."""
    try:
        async with connection.begin():
            await connection.execute(sa.text(f"SET LOCAL lock_timeout = '{PATIENCE}'"))
            await connection.execute(sa.select(sa.func.pg_advisory_lock(NUMBER)))
    except BaseException as error:
        await connection.close()
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) == NOT_AVAILABLE:
            raise StoreInUseError(
                "another service works with this database; stop it, or name another database"
            ) from None
        raise
    return connection
