# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster of two machines, shared by all tests: it takes its time to start."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.ray_hosts import Hosts, ray_hosts
from tests.support.ray_services import RayStand


@pytest.fixture(scope="session")
def hosts() -> Iterator[Hosts]:
    with ray_hosts(2) as hosts:
        yield hosts


@pytest.fixture
def short_path() -> Iterator[Path]:
    """For sockets: these may have 107 bytes, of which Ray takes seventy."""
    with tempfile.TemporaryDirectory(prefix="pn-") as name:
        yield Path(name)


@pytest.fixture
async def stand(hosts: Hosts, engine: FakeEngine, tmp_path: Path) -> AsyncIterator[RayStand]:
    stand = RayStand(hosts, engine, tmp_path)
    yield stand
    await stand.end()
