# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What happens, as server-sent events: each has its number, and a reader that comes back goes on after the last one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated

import orjson
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.records import EventRecord

HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
LATEST = 2**53  # what JSON numbers can hold


def make_router(control: Coordinator, keep_alive: float) -> APIRouter:
    """A comment every `keep_alive` seconds tells a silent stream from a dead one."""
    router = APIRouter(tags=["events"])

    @router.get("/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
    async def events(
        after: Annotated[int, Query(ge=0, le=LATEST, description="the number of the last event that is known")] = 0,
        task_id: Annotated[str | None, Query(description="only this task's")] = None,
        last_event_id: Annotated[int | None, Header(ge=0, le=LATEST)] = None,
    ) -> StreamingResponse:
        """All events after `after` (or `Last-Event-ID`), then new ones as they happen."""
        start = after if last_event_id is None else last_event_id
        stream = lines(control.events(start, task_id=task_id), keep_alive)
        return StreamingResponse(stream, media_type="text/event-stream", headers=HEADERS)

    return router


async def lines(events: AsyncIterator[EventRecord], keep_alive: float) -> AsyncIterator[bytes]:
    yield b": polar\n\n"
    upcoming = asyncio.ensure_future(anext(events))
    try:
        while True:
            done, _ = await asyncio.wait([upcoming], timeout=keep_alive)
            if not done:
                yield b": still here\n\n"
                continue
            yield encode(upcoming.result())
            upcoming = asyncio.ensure_future(anext(events))
    except StopAsyncIteration:
        return
    finally:
        upcoming.cancel()
        with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
            await upcoming


def encode(event: EventRecord) -> bytes:
    data = orjson.dumps(event.model_dump(mode="json"))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.kind.encode(), data)
