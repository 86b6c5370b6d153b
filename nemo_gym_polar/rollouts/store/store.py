# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The durable store: tasks, sessions, nodes and events in a database, by `Batch`.

Invariant: a batch is in the store as a whole or not at all, and once `write` has returned it survives the process.
One service writes; its batches are serialised, so that the numbers of events grow in the order in which they appear.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Self

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from nemo_gym_polar.rollouts.control.records import EventRecord
from nemo_gym_polar.rollouts.store.batch import Batch, write_batch
from nemo_gym_polar.rollouts.store.claim import Claim
from nemo_gym_polar.rollouts.store.engine import make_database, store_url
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.store.measures import Measures
from nemo_gym_polar.rollouts.store.migrate import migrate
from nemo_gym_polar.rollouts.store.reads import Reads


class Store(Reads):
    """async with Store("sqlite:///run/polar.db") as store: …

    Raises `StoreError` where the database can't be had, `StoreInUseError` where another service has it.
    """

    def __init__(self, url: str) -> None:
        self.url = store_url(url)
        self.measures = Measures()
        self._engine: AsyncEngine | None = None
        self._claim: Claim | None = None
        self._writing = asyncio.Lock()
        self._written = asyncio.Event()

    async def open(self) -> None:
        self._engine = make_database(self.url)
        try:
            with explained(self.url):
                self._claim = Claim(self._engine)
                async with self._transaction() as connection:
                    await connection.run_sync(migrate)
        except TypeError as error:  # how the drivers answer an option that they don't know
            await self.close()
            raise StoreError(f"store: an option of the URL is wrong: {error}") from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        claim, self._claim = self._claim, None
        if claim:
            await claim.close()
        engine, self._engine = self._engine, None
        if engine:
            await engine.dispose()

    async def write(self, batch: Batch) -> list[EventRecord]:
        """The batch's events, numbered. Raises `StoreError` if nothing of it was written."""
        async with self._writing:
            async with self._transaction() as connection:
                numbered = await write_batch(connection, batch)
            self.measures.count(numbered)
            written, self._written = self._written, asyncio.Event()
            written.set()
            return numbered

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction for what is no batch; it wakes nobody."""
        async with self._writing, self._transaction() as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection]:
        if self._claim is None:
            raise StoreError("the store is closed")
        with self.measures.measure("write"), explained(self.url):
            connection = await self._claim.writer()
            async with connection.begin():
                yield connection

    @property
    def written(self) -> asyncio.Event:
        """Set by the next batch from now on."""
        return self._written

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        with self.measures.measure("read"), explained(self.url):
            async with self.database.connect() as connection:
                yield connection

    @property
    def database(self) -> AsyncEngine:
        if self._engine is None:
            raise StoreError("the store is closed")
        return self._engine

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@contextlib.contextmanager
def explained(url: URL) -> Iterator[None]:
    """What a driver raises, as one line that names the store."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(f"store {shown(url)}: {' '.join(str(error.orig).split())}") from error
    except (SQLAlchemyError, OSError) as error:
        raise StoreError(f"store {shown(url)}: {' '.join(str(error).split())}") from error


def shown(url: URL) -> str:
    """Without what may be secret."""
    plain = url.set(drivername=url.get_backend_name(), query={})
    return plain.render_as_string(hide_password=True)
