# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""When a process is to stop, and how it waits for what its node still runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from nemo_gym_polar.rollouts.nodes.base import Node

LOOK = 0.2  # seconds between two looks at what is left


class Stop:
    """SIGINT or SIGTERM: the first asks to end in good order, the second to end now."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.now = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, self._heard)

    def _heard(self) -> None:
        (self.now if self.asked.is_set() else self.asked).set()

    async def emptied(self, node: Node, seconds: float) -> None:
        """Once every result of the node has been fetched, or `seconds` have passed, or it is to end now."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.now.is_set():
                    if not await node.reports(0, 0.0):
                        return
                    await asyncio.sleep(LOOK)
