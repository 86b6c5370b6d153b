# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The typed client, against the service on a real port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from nemo_gym_polar.rollouts.client import (
    BusyError,
    ConflictError,
    NotFoundError,
    RefusedError,
    RolloutClient,
    ServiceError,
    UnauthorizedError,
    UnreachableError,
)
from nemo_gym_polar.rollouts.control.records import TaskState
from nemo_gym_polar.rollouts.task import AgentSpec, TaskRequest
from tests.support.control_api import TOKEN, Desk, desk, task

REQUEST = TaskRequest(
    task_id="one", instruction="Do nothing.", agent=AgentSpec(harness="shell", settings={"command": "true"})
)


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(tmp_path) as made:
        yield made


@pytest.fixture
async def client(at: Desk) -> AsyncIterator[RolloutClient]:
    async with RolloutClient(at.url, TOKEN) as made:
        yield made


async def end_all(at: Desk, count: int) -> None:
    await at.started(count)
    for name in list(at.node.running):
        at.node.end(name)


async def test_submit_wait_and_look(at: Desk, client: RolloutClient) -> None:
    assert (await client.submit(REQUEST)).status is TaskState.RUNNING
    waiting = asyncio.create_task(client.wait("one", timeout=10))
    await end_all(at, 1)
    done = await waiting
    assert (done.status, done.results[0].status, done.results[0].reward) == (TaskState.COMPLETED, "COMPLETED", 1.0)
    assert [one.task_id for one in await client.tasks(status=TaskState.COMPLETED)] == ["one"]
    (session,) = await client.sessions("one")
    assert (await client.session(session.session_id)).session_id == session.session_id
    with pytest.raises(NotFoundError, match="has no traces"):
        await client.traces(session.session_id)
    assert (await client.status())["tasks"] == {"completed": 1}


async def test_waiting_has_an_end(client: RolloutClient) -> None:
    await client.submit(REQUEST)
    with pytest.raises(TimeoutError):
        await client.wait("one", timeout=0.3)


async def test_errors_are_typed(at: Desk, client: RolloutClient) -> None:
    with pytest.raises(NotFoundError, match="there is no task 'none'"):
        await client.task("none")
    with pytest.raises(RefusedError, match="did you mean 'num_samples'"):
        await client.submit(task(num_sample=1))
    await client.submit(REQUEST)
    with pytest.raises(ConflictError, match="other content"):
        await client.submit(REQUEST.model_copy(update={"num_samples": 2}))
    async with RolloutClient(at.url, "wrong") as stranger:
        with pytest.raises(UnauthorizedError, match="control token is wrong"):
            await stranger.tasks()
        with pytest.raises(UnauthorizedError):
            await anext(aiter(stranger.events()))


async def test_a_full_service_is_asked_again(tmp_path: Path) -> None:
    async with desk(tmp_path, capacity=1, max_waiting=1, retry_after=1.0) as at, RolloutClient(at.url, TOKEN) as client:
        await client.submit(REQUEST)
        async with asyncio.timeout(10):
            while True:
                if at.node.started:
                    break
                await asyncio.sleep(0.01)
        await client.submit(task("two"))
        with pytest.raises(BusyError) as busy:
            await client.submit(task("three"))
        assert busy.value.retry_after == 1.0
        trying = asyncio.create_task(client.submit(task("three"), patience=20.0))
        await end_all(at, 1)
        await trying


async def test_nobody_there(unused_tcp_port: int) -> None:
    async with RolloutClient(f"http://127.0.0.1:{unused_tcp_port}", attempts=2) as client:
        with pytest.raises(UnreachableError, match="no answer from the service at http"):
            await client.tasks()
        with pytest.raises(UnreachableError):
            await anext(aiter(client.events()))


async def test_calls_are_repeated_until_the_service_is_back() -> None:
    codes = [503, 502, 200]

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"tasks": []}, status=codes.pop(0))

    async with elsewhere(answer) as url, RolloutClient(url) as client:
        assert await client.tasks() == []
        assert not codes


async def test_something_else_there() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<html>")

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/")

    async with elsewhere(answer) as url, RolloutClient(url) as client:
        with pytest.raises(ServiceError, match="is that the rollout service"):
            await client.tasks()
    async with elsewhere(redirect) as url, RolloutClient(url, TOKEN) as client:
        with pytest.raises(ServiceError, match="answered 302"):
            await client.tasks()


async def test_events_over_a_broken_connection(at: Desk) -> None:
    async with Breaking(at.url) as door, RolloutClient(door.url, TOKEN) as client:
        await client.submit(task(num_samples=3))
        await end_all(at, 3)
        door.room = 700  # bytes: somewhere in an event
        seen = []
        async with asyncio.timeout(20):
            async for event in client.events(task_id="one"):
                seen.append(event)
                door.cut()
                if event.kind.startswith("task.completed"):
                    break
        whole = [event async for event in upto(client, seen[-1].id)]
        assert [event.id for event in seen] == [event.id for event in whole]
        assert door.room is None, "the stream was not broken"


async def upto(client: RolloutClient, last: int) -> AsyncIterator[object]:
    async for event in client.events(task_id="one"):
        yield event
        if event.id == last:
            return


async def test_weights_and_nodes(at: Desk, client: RolloutClient) -> None:
    assert (await client.pause(2.0)).paused
    assert not (await client.resume(9)).paused
    assert (at.node.paused, at.node.versions) == ([2.0], ["9"])
    assert [node.node_id for node in await client.nodes()] == ["n1"]
    assert (await client.drain("n1")).draining


@pytest.fixture
def unused_tcp_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class elsewhere:  # noqa: N801 - used like a function
    def __init__(self, answer: object) -> None:
        self.answer = answer

    async def __aenter__(self) -> str:
        app = web.Application()
        app.router.add_get("/tasks", self.answer)  # type: ignore[arg-type]
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self.runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self.runner.cleanup()


class Breaking:
    """A proxy that loses connections when it is told to, and one when it has answered `room` bytes."""

    def __init__(self, url: str) -> None:
        self.target = url
        self.room: int | None = None
        self.writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Breaking:
        self.server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        self.server.close()

    def cut(self) -> None:
        for writer in self.writers:
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.target.removeprefix("http://").partition(":")
        there, back = await asyncio.open_connection(host, int(port))
        mine = {writer, back}
        self.writers |= mine
        try:
            await asyncio.gather(pump(reader, back), self._answer(there, writer))
        except OSError:
            pass
        finally:
            self.writers -= mine
            for one in mine:
                one.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            room, self.room = self.room, None
            writer.write(data[:room])
            await writer.drain()
            if room is not None and room <= len(data):
                raise ConnectionResetError
            self.room = room and room - len(data)
        writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
