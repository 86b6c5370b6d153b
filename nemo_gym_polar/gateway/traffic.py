# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How many are under way, and a way to wait until none is."""

from __future__ import annotations

import asyncio
import contextlib


class Traffic:
    """`with traffic:` counts one more for as long as the block runs."""

    def __init__(self) -> None:
        self.number = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> None:
        self.number += 1
        self._idle.clear()

    def __exit__(self, *_: object) -> None:
        self.number -= 1
        if not self.number:
            self._idle.set()

    async def idle(self, seconds: float) -> bool:
        """Wait until nothing is under way, for `seconds` at most; whether that is so."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        return not self.number
