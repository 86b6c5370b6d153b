# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.postgres import Postgres, postgres
from tests.support.rollouts import Marked, Stand, stand


@pytest.fixture
async def bench(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    async with stand(engine, tmp_path) as made:
        yield made


@pytest.fixture
def marked() -> Marked:
    return Marked()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


databases = itertools.count()


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new store's URL; what asks for it is tested on both."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/polar.db"
    server: Postgres = request.getfixturevalue("postgres_server")
    return server.database(f"store_{next(databases)}")
