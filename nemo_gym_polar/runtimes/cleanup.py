# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Clean-up that cancellation can't interrupt."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def to_the_end[T](work: Coroutine[Any, Any, T]) -> T:
    """Do all of `work`, however often the caller is cancelled meanwhile; then be cancelled. `work` must be bounded."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    return task.result()
