# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A store whose disk can be full, or whose answer can be lost after the work was done."""

from __future__ import annotations

import asyncio

from nemo_gym_polar.rollouts.control.records import EventRecord
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.store.store import Store


class FaultyStore(Store):
    """`slow` is the kind of an event whose batch waits for `go`; `waits` says that one does."""

    full = False
    lossy = False
    slow = ""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.waits, self.go = asyncio.Event(), asyncio.Event()

    async def write(self, batch: Batch) -> list[EventRecord]:
        if any(told.kind == self.slow for told in batch.events):
            self.waits.set()
            await self.go.wait()
        if self.full:
            raise StoreError("store: the disk is full")
        written = await super().write(batch)
        if self.lossy:
            raise StoreError("store: the connection was lost")
        return written
