# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""When a process is to stop."""

from __future__ import annotations

import asyncio
import signal


def stop_event() -> asyncio.Event:
    """Set by SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    return stop
