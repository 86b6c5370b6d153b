# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Somebody who is called back, over the wire: keeps what comes, and answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web


@dataclass(frozen=True, slots=True)
class Call:
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def kind(self) -> str:
        return self.headers["X-Polar-Event"]


class CallbackTarget:
    """`answer` gives the status of each call from its number, 0 for the first."""

    def __init__(self, answer: Callable[[int], int] = lambda _: 204) -> None:
        self.answer = answer
        self.calls: list[Call] = []
        self.elsewhere = 0

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/results", self._take)
        app.router.add_route("*", "/elsewhere", self._redirected)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/results"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        call = Call(dict(request.headers), await request.read())
        status = self.answer(len(self.calls))
        self.calls.append(call)
        headers = {"Location": "/elsewhere"} if status in (302, 307) else {}
        return web.Response(status=status, headers=headers)

    async def _redirected(self, request: web.Request) -> web.Response:
        self.elsewhere += 1
        return web.Response()

    async def heard(self, count: int, seconds: float = 60.0) -> list[Call]:
        """Once so many calls have come."""
        async with asyncio.timeout(seconds):
            while True:
                if len(self.calls) >= count:
                    return self.calls
                await asyncio.sleep(0.02)
