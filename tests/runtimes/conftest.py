# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Started sandboxes of both kinds, and a way to see whether their processes are really gone."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from nemo_gym_polar.runtimes.base import Runtime
from nemo_gym_polar.runtimes.limits import Limits
from nemo_gym_polar.runtimes.local import NoIsolationWarning
from nemo_gym_polar.runtimes.registry import GatewayAddress, make_runtime

NOWHERE = GatewayAddress(url="http://127.0.0.1:9")
seconds = itertools.count(100_000)


class Marked:
    """A `sleep` that can be told from all others by its length."""

    def __init__(self) -> None:
        self.length = f"{next(seconds)}.{os.getpid()}"
        self.command = f"sleep {self.length}"

    def alive(self) -> bool:
        return any(self.length in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))

    async def gone(self, within: float = 30.0) -> bool:
        deadline = time.monotonic() + within
        while self.alive():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    async def seen(self, within: float = 30.0) -> bool:
        deadline = time.monotonic() + within
        while not self.alive():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.02)
        return True


@pytest.fixture
def marked() -> Marked:
    return Marked()


StartedRuntime = Callable[..., Awaitable[Runtime]]


@pytest.fixture
async def started() -> AsyncIterator[StartedRuntime]:
    """Makes started runtimes and stops them at the end."""
    runtimes: list[Runtime] = []

    async def start(backend: str, gateway: GatewayAddress = NOWHERE, **settings: int) -> Runtime:
        if backend == "local":
            with pytest.warns(NoIsolationWarning):
                runtimes.append(make_runtime(backend, gateway, settings=settings))
        else:
            runtimes.append(make_runtime(backend, gateway, settings=settings))
        await runtimes[-1].start()
        return runtimes[-1]

    yield start
    for runtime in runtimes:
        await runtime.stop()


@pytest.fixture(params=["bubblewrap", "local"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def runtime(started: StartedRuntime, backend: str) -> Runtime:
    return await started(backend)


def in_workspace(runtime: Runtime, name: str) -> str:
    return str(Path(runtime.workspace) / name)


__all__ = ["NOWHERE", "Limits", "Marked", "StartedRuntime", "in_workspace"]
