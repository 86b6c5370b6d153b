# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Server-sent events, read."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import orjson

from nemo_gym_polar.rollouts.control.records import EventRecord


async def read_events(content: aiohttp.StreamReader) -> AsyncIterator[EventRecord]:
    """Only whole events; comments are passed over."""
    data = b""
    async for raw in content:
        line = raw.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data += line[5:].lstrip()
        elif not line and data:
            yield EventRecord.model_validate(orjson.loads(data))
            data = b""
