# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How a benchmark's engine is served: on a free port, whose URL is its first line, until its process is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web


def engine(generate: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    """One that takes tokens, of one model."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/inference/v1/generate", generate)
    app.router.add_get("/v1/models", _models)
    return app


async def _models(_: web.Request) -> web.Response:
    return web.json_response({"data": []})


async def listen(app: web.Application) -> None:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()
