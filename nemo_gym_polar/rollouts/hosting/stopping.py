# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""When a process is to stop, and how it waits for what its node still runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

from nemo_gym_polar.rollouts.nodes.base import Node, NodeError

LOOK = 0.2  # seconds between two looks at what is left


class Stop:
    """SIGINT or SIGTERM: the first asks to end in good order, the second to end now."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.now = asyncio.Event()
        self._starting: asyncio.Task[object] | None = None
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, self._heard)

    def _heard(self) -> None:
        (self.now if self.asked.is_set() else self.asked).set()
        if self._starting:
            self._starting.cancel()

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """What is begun in here may wait for others, such as an engine that does not answer; a signal ends it at once,
        with a `NodeError`."""
        self._starting = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if not self.asked.is_set():
                raise
            raise NodeError("told to stop before it had started") from None
        finally:
            self._starting = None

    async def emptied(self, node: Node, seconds: float) -> None:
        """Once every result of the node has been fetched, or `seconds` have passed, or it is to end now."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.now.is_set():
                    if not await node.reports(0, 0.0):
                        return
                    await asyncio.sleep(LOOK)
