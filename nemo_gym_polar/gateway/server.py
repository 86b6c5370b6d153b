# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway on a port and, if asked, on a Unix socket, inside a running event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from nemo_gym_polar.gateway.app import HotPath, make_app
from nemo_gym_polar.gateway.connection import ResettableProtocol
from nemo_gym_polar.gateway.gateway import Gateway

_KEEP_ALIVE = 75  # seconds; longer than any harness leaves a connection idle, so that none is closed under a request
_BACKLOG = 2048
_GRACE = 5.0  # seconds; generations have been cut by then, only commits and writes are left


@dataclass(frozen=True, slots=True)
class Server:
    """Where the gateway listens."""

    url: str
    port: int
    uds: Path | None


@contextlib.asynccontextmanager
async def serve(
    gateway: Gateway,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    uds: str | Path | None = None,
    app: FastAPI | None = None,
) -> AsyncIterator[Server]:
    """Listen until the block ends. Port 0 takes a free one; a port that is taken raises `OSError` with its name."""
    config = uvicorn.Config(
        HotPath(gateway, app or make_app(gateway)),
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()

    def connection() -> ResettableProtocol:
        limit = gateway.settings.max_header_bytes
        return ResettableProtocol(config=config, server_state=state, app_state={}, _loop=loop, max_header_bytes=limit)

    listeners = [await _listen(loop, connection, host, port)]
    try:
        if uds is not None:
            listeners.append(await loop.create_unix_server(connection, path=str(uds), backlog=_BACKLOG))
        bound = listeners[0].sockets[0].getsockname()[1]
        yield Server(f"http://{_in_url(host)}:{bound}", bound, None if uds is None else Path(uds))
    finally:
        for listener in listeners:
            listener.close()
        gateway.cut_calls()
        await _drain(state)
        if uds is not None:
            await asyncio.to_thread(Path(uds).unlink, missing_ok=True)


async def _listen(
    loop: asyncio.AbstractEventLoop, connection: Callable[[], asyncio.Protocol], host: str, port: int
) -> asyncio.Server:
    try:
        return await loop.create_server(connection, host=host, port=port, backlog=_BACKLOG)
    except OSError as error:
        raise OSError(error.errno, f"can't listen on {host}:{port}: {error.strerror}; choose another port") from None


async def _drain(state: ServerState) -> None:
    """Let answers end that are being sent."""
    for connection in list(state.connections):
        connection.shutdown()
    if state.tasks:
        await asyncio.wait(state.tasks, timeout=_GRACE)
    for task in list(state.tasks):
        task.cancel()


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
