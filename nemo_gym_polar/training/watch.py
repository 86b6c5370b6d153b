# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Work that ends early when somebody asks the run to stop, or when the engine has ended."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from nemo_gym_polar.training.errors import TrainingError


class StoppedError(Exception):
    """The run was asked to stop."""


class Watch:
    """`lost` is the end of the engine's process: it results in what to say about it."""

    def __init__(self, stop: asyncio.Event, lost: Callable[[], Coroutine[Any, Any, str]]) -> None:
        self._stop = stop
        self._lost = lost

    async def over[T](self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. If it must end early it is cancelled, and what it held is free when this raises
        `StoppedError` or `TrainingError`."""
        working = asyncio.ensure_future(work)
        stopped, lost = asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(self._lost())
        try:
            await asyncio.wait({working, stopped, lost}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if stopped.done():
                raise StoppedError
            raise TrainingError(lost.result())
        finally:
            for future in (working, stopped, lost):
                future.cancel()
            await asyncio.gather(working, stopped, lost, return_exceptions=True)


@contextmanager
def stop_on_signals(stop: asyncio.Event, say: Callable[[str], None]) -> Iterator[None]:
    """The first SIGINT or SIGTERM asks the run to stop in good order; the next one has its usual effect."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def interrupt() -> None:
        say("stopping: sessions are ended and a checkpoint is written; once more to stop at once")
        stop.set()
        restore()

    def restore() -> None:
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        restore()
