# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Several generations at once: all of them, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def together[T](work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. The first failure stops the others and is raised."""
    first, *rest = work
    if not rest:
        return [await first]
    tasks = [asyncio.ensure_future(one) for one in (first, *rest)]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
