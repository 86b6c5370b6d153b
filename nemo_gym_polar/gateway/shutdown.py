# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The end of a gateway that runs by itself: the first signal asks for it, the second insists."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from nemo_gym_polar.gateway.gateway import Gateway


class Stop:
    """SIGINT and SIGTERM of this process, from when it is made in a running loop."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, self.signal)

    def signal(self) -> None:
        (self.insisted if self.asked.is_set() else self.asked).set()

    async def drained(self, gateway: Gateway, seconds: float, say: Callable[[str], None]) -> None:
        """Return when no call is in flight, when the `seconds` are up, or when a second signal comes."""
        if gateway.calls_in_flight:
            say(f"{gateway.calls_in_flight} calls may end within {seconds:g} s; signal again to cut them off")
        draining = asyncio.create_task(gateway.drain(seconds))
        insisted = asyncio.create_task(self.insisted.wait())
        await asyncio.wait({draining, insisted}, return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, insisted):
            task.cancel()
        await asyncio.gather(draining, insisted, return_exceptions=True)
