# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node that comes, stays and leaves, as its service sees it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from aiohttp import web

from nemo_gym_polar.rollouts.hosting.membership import Membership

BEAT = 0.02  # seconds


@dataclass(slots=True)
class Service:
    """Keeps what it was told, in order. One that forgets a node takes its time for it."""

    told: list[str] = field(default_factory=list)
    known: bool = False
    url: str = ""

    async def register(self, request: web.Request) -> web.Response:
        self.told.append("register")
        self.known = True
        return web.json_response({})

    async def beat(self, request: web.Request) -> web.Response:
        self.told.append("heartbeat")
        return web.json_response({}, status=200 if self.known else 404)

    async def leave(self, request: web.Request) -> web.Response:
        self.told.append("remove" if "remove" in request.query else "drain")
        if "remove" in request.query:
            self.known = False
            await asyncio.sleep(10 * BEAT)
        return web.json_response({})


@contextlib.asynccontextmanager
async def service() -> AsyncIterator[Service]:
    made, app = Service(), web.Application()
    app.router.add_post("/nodes/register", made.register)
    app.router.add_post("/nodes/far/heartbeat", made.beat)
    app.router.add_delete("/nodes/far", made.leave)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = "http://{}:{}".format(*runner.addresses[0][:2])
        yield made
    finally:
        await runner.cleanup()


async def heard(made: Service, word: str, times: int) -> None:
    async with asyncio.timeout(30):
        while True:
            if made.told.count(word) >= times:
                return
            await asyncio.sleep(BEAT)


async def test_a_node_that_leaves_does_not_come_again() -> None:
    async with service() as made:
        async with Membership(made.url, None, {"node_id": "far"}, BEAT, asyncio.Event()) as member:
            await heard(made, "heartbeat", 2)
            await member.leave(remove=False)
            beats = made.told.count("heartbeat")
            await heard(made, "heartbeat", beats + 1)  # it is still there
            await member.leave(remove=True)
        assert made.told.count("register") == 1


async def test_a_node_that_was_forgotten_comes_again() -> None:
    async with service() as made, Membership(made.url, None, {"node_id": "far"}, BEAT, asyncio.Event()):
        await heard(made, "heartbeat", 1)
        made.known = False
        await heard(made, "register", 2)
