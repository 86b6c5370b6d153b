# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A database engine for a store's URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from nemo_gym_polar.rollouts.store.errors import StoreError

PATIENCE = {"timeout": 15.0, "command_timeout": 60.0}  # seconds, of PostgreSQL's driver
BUSY = 15_000  # milliseconds that a connection to SQLite waits for another one's write


def store_url(text: str) -> URL:
    """With the driver that this package uses. Raises `StoreError` for what is no store."""
    try:
        url = make_url(text)
    except ArgumentError:
        shown = text.rpartition("@")[2]  # what stands before it may hold a password
        raise StoreError(f"store={shown!r} is no URL; write sqlite:///FILE or postgresql://USER@HOST/NAME") from None
    drivers = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}
    driver = drivers.get(url.drivername.partition("+")[0])
    if driver is None:
        raise StoreError(f"store: {url.drivername!r} is not supported; use sqlite or postgresql")
    if driver.startswith("sqlite") and not is_file(url):
        raise StoreError("store: SQLite in memory keeps nothing; name a file as in sqlite:///polar/polar.db")
    return with_ssl(url.set(drivername=driver))


def with_ssl(url: URL) -> URL:
    """`sslmode`, as everybody else calls what asyncpg calls `ssl`."""
    if "sslmode" not in url.query:
        return url
    return url.difference_update_query(["sslmode"]).update_query_dict({"ssl": url.query["sslmode"]})


def is_file(url: URL) -> bool:
    return bool(url.database) and url.database != ":memory:" and "mode=memory" not in str(url)


def make_database(url: URL) -> AsyncEngine:
    try:
        if url.get_backend_name() == "sqlite":
            file = Path(str(url.database))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)  # a task's environment may hold keys
            engine = create_async_engine(url)
            sa.event.listen(engine.sync_engine, "connect", _pragmas)
            return engine
        return create_async_engine(url, pool_pre_ping=True, connect_args=PATIENCE)
    except (ModuleNotFoundError, NoSuchModuleError):
        raise StoreError("store: PostgreSQL needs its driver: pip install 'nemo-gym-polar[postgres]'") from None
    except OSError as error:
        raise StoreError(f"store: {error}; choose a directory that can be written") from error


def _pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={BUSY}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
