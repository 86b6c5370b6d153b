# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps a stream alive whose answer is still awaited. Most answers come before there is need for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable


class KeepAlive:
    """Calls `beat` after `grace` seconds and then every `pause`; while it is not `ready`, looks again after `grace`.

    A beat that has begun is never broken off: half of a stream's beginning can't be taken back.
    """

    def __init__(
        self, beat: Callable[[], Awaitable[None]], ready: Callable[[], bool], *, grace: float, pause: float
    ) -> None:
        self._beat = beat
        self._ready = ready
        self._grace = grace
        self._pause = pause
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(grace, self._start)

    async def end(self) -> None:
        """Raises what a beat raised."""
        self._timer.cancel()
        self._over.set()
        if self._task is not None:
            await self._task

    def _start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not self._over.is_set():
            ready = self._ready()
            if ready:
                await self._beat()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause if ready else self._grace):
                    await self._over.wait()
