# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Ray's blocking calls, from an event loop: one after the other in a thread of their own.

Ray ends the process where a call is under way while it shuts down; in one thread, none can be.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

_thread = ThreadPoolExecutor(1, thread_name_prefix="ray")


async def in_turn[**P, T](work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Cancelling this doesn't stop the call."""
    return await asyncio.get_running_loop().run_in_executor(_thread, partial(work, *arguments, **options))


def keep_signals() -> None:
    """Put the handlers back that Ray took the place of: its own print a stack trace at every SIGTERM."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler is not None:
            signal.signal(number, handler)
