# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A bounded pool whose places go to the highest priority first, and within one to whoever asked first."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

SLACK = 16  # cancelled waiters that may lie in a queue besides as many as wait


@dataclass(frozen=True, slots=True)
class Usage:
    """A pool at one moment: its places, how many are taken, and how many wait for one."""

    size: int
    used: int
    waiting: int


class Pool:
    """Whoever waits costs one future: nothing polls. While a place is free, nobody waits."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self.waiting = 0
        self._numbers = itertools.count()
        self._queue: list[tuple[int, int, asyncio.Future[None]]] = []

    @property
    def usage(self) -> Usage:
        return Usage(self.size, self.used, self.waiting)

    @asynccontextmanager
    async def place(self, priority: int = 0) -> AsyncIterator[None]:
        await self.acquire(priority)
        try:
            yield
        finally:
            self.release()

    async def acquire(self, priority: int = 0) -> None:
        if self.used < self.size:
            self.used += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (-priority, next(self._numbers), place))
        self.waiting += 1
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._forget()
            else:  # it was given in the same moment
                self.release()
            raise

    def release(self) -> None:
        """Hand the place on, or put it back."""
        while self._queue:
            _, _, place = heapq.heappop(self._queue)
            if not place.done():
                self.waiting -= 1
                place.set_result(None)
                return
        self.used -= 1

    def _forget(self) -> None:
        """Take note of a waiter that was cancelled; its entry goes when there are many of them."""
        self.waiting -= 1
        if len(self._queue) > 2 * self.waiting + SLACK:
            self._queue = [entry for entry in self._queue if not entry[2].done()]
            heapq.heapify(self._queue)
