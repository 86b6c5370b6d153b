# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The event stream: in order, each once, with no gap over a reconnection."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.support.control_api import Desk, task


async def read(
    at: Desk, count: int = 1000, last: int | None = None, query: str = "", until: str = ""
) -> list[dict[str, Any]]:
    """The next events of a new connection, up to one of the kind `until`; then it is cut."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(10), at.client.get(f"{at.url}/events{query}", headers=headers) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        lines: dict[str, str] = {}
        async for raw in reply.content:
            line = raw.decode().rstrip("\n")
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                lines[name] = value
            elif lines:
                event = orjson.loads(lines["data"])
                assert (str(event["id"]), event["kind"]) == (lines["id"], lines["event"])
                found.append(event)
                lines = {}
                if len(found) == count or event["kind"] == until:
                    return found
    return found


async def test_no_gap_and_nothing_twice_over_reconnections(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=3))
    await at.started(3)
    for work in list(at.node.started):
        at.node.end(work.session_id)
    whole = await read(at, until="task.completed")
    assert [event["id"] for event in whole] == list(range(whole[0]["id"], whole[0]["id"] + len(whole)))
    assert sum(event["kind"] == "session.completed" for event in whole) == 3
    pieces: list[dict[str, Any]] = []
    while len(pieces) < len(whole):
        pieces += await read(at, min(3, len(whole) - len(pieces)), pieces[-1]["id"] if pieces else 0)
    assert pieces == whole


async def test_events_come_as_they_happen(at: Desk) -> None:
    (first,) = await read(at, 1)
    assert first["kind"] == "node.added"
    reading = asyncio.create_task(read(at, 1, last=first["id"]))
    await asyncio.sleep(0.1)
    assert not reading.done()
    await at.call("POST", "/rollout/task/submit", json=task())
    (event,) = await reading
    assert event["task_id"] == "one"


async def test_events_of_one_task(at: Desk) -> None:
    for name in ("one", "two"):
        await at.call("POST", "/rollout/task/submit", json=task(name))
    found = await read(at, 2, query="?task_id=two")
    assert {event["task_id"] for event in found} == {"two"}


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "9" * 30])
async def test_what_is_no_number_is_refused(at: Desk, wrong: str) -> None:
    assert (await at.call("GET", "/events", headers={"Last-Event-ID": wrong}))[0] == 422
    assert (await at.call("GET", f"/events?after={wrong}"))[0] == 422
