# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The refit against a server that speaks vLLM's calls over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from nemo_gym_polar.training.engine_client import EngineClient
from nemo_gym_polar.training.errors import TrainingError

CALLS = ("pause", "collective_rpc", "reset_prefix_cache", "update_weight_version", "resume")


class Engine:
    """Notes what it is asked; `failing` answers 500."""

    def __init__(self, calls: tuple[str, ...] = CALLS) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.failing = ""
        self.keys: set[str | None] = set()
        app = web.Application()
        app.add_routes([web.post(f"/{call}", self._answer) for call in calls])
        self.server = TestServer(app)

    @property
    def url(self) -> str:
        return str(self.server.make_url("/"))

    async def _answer(self, request: web.Request) -> web.Response:
        call = request.path.removeprefix("/")
        self.keys.add(request.headers.get("Authorization"))
        self.asked.append((call, dict(request.query), await request.json() if request.can_read_body else None))
        if call == self.failing:
            return web.json_response({"error": {"message": "no such\nfile"}}, status=500)
        return web.json_response({"status": "ok"})


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    made = Engine()
    async with made.server:
        yield made


async def test_the_calls_in_their_order(engine: Engine, tmp_path: Path) -> None:
    async with EngineClient(engine.url + "v1/", api_key="key") as client:
        await client.push(tmp_path, "3")
    assert engine.asked == [
        ("pause", {"mode": "wait"}, None),
        ("collective_rpc", {}, {"method": "reload_weights", "kwargs": {"weights_path": str(tmp_path)}}),
        ("reset_prefix_cache", {}, None),
        ("update_weight_version", {}, {"new_version": "3"}),
        ("resume", {}, None),
    ]
    assert engine.keys == {"Bearer key"}


async def test_a_relative_directory_is_made_absolute(engine: Engine) -> None:
    async with EngineClient(engine.url) as client:
        await client.push(Path("weights"), "1")
    assert engine.asked[1][2]["kwargs"]["weights_path"] == str(Path.cwd() / "weights")


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_fails_is_named_and_nothing_follows(engine: Engine, tmp_path: Path, call: str) -> None:
    engine.failing = call
    async with EngineClient(engine.url) as client:
        with pytest.raises(TrainingError, match=f'refused http://.*/{call} with 500: .*"no such') as caught:
            await client.push(tmp_path, "1")
    assert engine.asked[-1][0] == call
    assert "\n" not in str(caught.value)


async def test_a_server_without_these_calls_says_how_to_get_them(tmp_path: Path) -> None:
    plain = Engine(calls=())
    async with plain.server, EngineClient(plain.url) as client:
        with pytest.raises(TrainingError, match="VLLM_SERVER_DEV_MODE=1"):
            await client.push(tmp_path, "1")


async def test_an_engine_that_has_ended(engine: Engine, tmp_path: Path) -> None:
    url = engine.url
    await engine.server.close()
    async with EngineClient(url) as client:
        with pytest.raises(TrainingError, match="can't be reached"):
            await client.push(tmp_path, "1")


async def test_an_engine_that_is_stuck(tmp_path: Path) -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/pause", hang)])
    async with TestServer(app) as server, EngineClient(str(server.make_url("/")), seconds=0.2) as client:
        with pytest.raises(TrainingError, match="did not answer"):
            await client.push(tmp_path, "1")
