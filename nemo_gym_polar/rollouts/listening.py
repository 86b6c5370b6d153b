# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An app on a port, inside a running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from starlette.types import ASGIApp

GRACE = 2  # seconds for answers that are being sent; event streams are cut off then
BACKLOG = 2048


class Server(uvicorn.Server):
    """Leaves signals to the process that it is a part of."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def listening(app: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    """The address, until the block ends. Port 0 takes a free one; a port that is taken raises `OSError`."""
    door = bind(host, port)
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = Server(config)
    serving = asyncio.create_task(server.serve([door]))
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{door.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(error.errno, f"can't listen on {host}:{port}: {error.strerror}; choose another port") from None
