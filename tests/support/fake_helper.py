# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A paid API as a helper model meets it: Chat Completions, text only, a key, no token ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web


@dataclass(slots=True)
class FakeHelper:
    """`said` is its answer's message; `requests` what it was asked. `status` other than 200 is an outage."""

    said: dict[str, Any] = field(default_factory=lambda: {"role": "assistant", "content": "A title."})
    key: str = "helper-key"
    status: int = 200
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _chat(self, request: web.Request) -> web.Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if given != self.key:
            return web.json_response({"error": {"message": f"Incorrect API key provided: {given}."}}, status=401)
        if self.status != 200:
            return web.json_response({"error": {"message": "out of order"}}, status=self.status)
        body = await request.json()
        self.requests.append(body)
        choice = {"message": self.said, "finish_reason": "stop", "logprobs": None}
        usage = {
            "prompt_tokens": 11,
            "completion_tokens": 3,
            "total_tokens": 14,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 1},
        }
        choices = [{**choice, "index": index} for index in range(body.get("n", 1))]
        return web.json_response({"object": "chat.completion", "choices": choices, "usage": usage})
