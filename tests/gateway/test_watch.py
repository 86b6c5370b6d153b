# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Being told when a client leaves: by our own server, by any other, and when it has left already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from nemo_gym_polar.gateway.connection import ResettableProtocol, watch


class Told:
    def __init__(self) -> None:
        self.times = 0
        self.event = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        self.event.set()


class App:
    """Watches one request until it is let go."""

    def __init__(self) -> None:
        self.told = Told()
        self.watched = asyncio.Event()
        self.go_on = asyncio.Event()
        self.late = False
        self.over = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        if self.late:
            self.watched.set()
            await self.go_on.wait()
        stop = watch(scope, receive, self.told)
        self.watched.set()
        await self.go_on.wait()
        stop()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        self.over.set()


@pytest.fixture
async def served() -> AsyncIterator[tuple[App, int]]:
    app = App()
    config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None)
    config.load()
    loop, state = asyncio.get_running_loop(), ServerState()

    def connection() -> ResettableProtocol:
        return ResettableProtocol(config=config, server_state=state, app_state={}, _loop=loop, max_header_bytes=65536)

    listener = await loop.create_server(connection, "127.0.0.1", 0)
    yield app, listener.sockets[0].getsockname()[1]
    listener.close()


async def asked(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
    return reader, writer


async def soon(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 10)


async def test_a_client_that_leaves(served: tuple[App, int]) -> None:
    app, port = served
    _, writer = await asked(port)
    await soon(app.watched)
    writer.close()
    await soon(app.told.event)
    app.go_on.set()
    await soon(app.over)
    assert app.told.times == 1


async def test_a_client_that_left_before(served: tuple[App, int]) -> None:
    app, port = served
    app.late = True
    _, writer = await asked(port)
    await soon(app.watched)
    writer.transport.abort()
    await asyncio.sleep(0.05)
    app.go_on.set()
    await soon(app.told.event)


async def test_a_client_that_leaves_after_its_answer(served: tuple[App, int]) -> None:
    app, port = served
    reader, writer = await asked(port)
    await soon(app.watched)
    app.go_on.set()
    assert (await reader.readuntil(b"\r\n")).endswith(b"200 OK\r\n")
    await soon(app.over)
    writer.close()
    await writer.wait_closed()
    await asyncio.sleep(0.05)
    assert app.told.times == 0


async def test_any_other_server_is_asked_by_receiving() -> None:
    told, messages = Told(), asyncio.Queue[dict[str, Any]]()
    watch({}, messages.get, told)
    messages.put_nowait({"type": "http.request"})
    await asyncio.sleep(0)
    assert not told.times
    messages.put_nowait({"type": "http.disconnect"})
    await soon(told.event)


async def test_any_other_server_is_no_longer_asked() -> None:
    told, messages = Told(), asyncio.Queue[dict[str, Any]]()
    stop = watch({}, messages.get, told)
    await asyncio.sleep(0)
    stop()
    messages.put_nowait({"type": "http.disconnect"})
    await asyncio.sleep(0.01)
    assert told.times == 0
