# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway in front of the scripted engine, and a harness's side of the wire."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import aiohttp
import orjson

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, Server, Session, serve
from tests.support.fake_engine import FakeEngine

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a command",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        },
    }
]


def engine_settings(
    engine: FakeEngine,
    *,
    mode: Literal["tokens", "chat"] = "tokens",
    more_urls: tuple[str, ...] = (),
    renderer: str = "qwen3.5",
    thinking: bool = False,
    **fields: Any,
) -> EngineSettings:
    """`fields` are more settings of the engine, such as its kind."""
    return EngineSettings(
        urls=(engine.url, *more_urls),
        model="tiny",
        mode=mode,
        tokenizer=str(engine.tokenizer_directory),
        renderer=renderer,
        renderer_options={"enable_thinking": thinking},
        **fields,
    )


@dataclass(slots=True)
class Bench:
    """All parts of one test: engine, gateway, server, and an HTTP client."""

    engine: FakeEngine
    gateway: Gateway
    server: Server
    client: aiohttp.ClientSession
    journals: Path

    async def post(
        self,
        session: Session,
        body: dict[str, Any] | bytes,
        *,
        key: str | None = None,
        path: str = "/v1/chat/completions",
    ) -> Reply:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {"authorization": f"Bearer {session.secret if key is None else key}"}
        url = self.server.url + session.path + path
        async with self.client.post(url, data=data, headers=headers) as response:
            return Reply(response.status, dict(response.headers), await response.read())


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = self.json["choices"][0]["message"]
        return message

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error


@contextlib.asynccontextmanager
async def bench(
    engine: FakeEngine,
    journals: Path,
    *,
    mode: Literal["tokens", "chat"] = "tokens",
    uds: Path | None = None,
    more_urls: tuple[str, ...] = (),
    engine_fields: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """`engine` must be running. `settings` are the gateway's, `engine_fields` more of the engine's."""
    mode_of_engine = make_engine(engine_settings(engine, mode=mode, more_urls=more_urls, **engine_fields or {}))
    async with (
        Gateway(mode_of_engine, GatewaySettings(journals=journals, **settings)) as gateway,
        serve(gateway, uds=uds) as server,
        aiohttp.ClientSession() as client,
    ):
        yield Bench(engine, gateway, server, client, journals)


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), "tools": TOOLS, **fields}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}
