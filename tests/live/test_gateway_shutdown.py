# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway process that is told to stop: what is in flight ends, what is new is refused, the journals are closed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Status
from tests.support.fake_engine import FakeEngine
from tests.support.gateway_process import Running, running, serve_settings
from tests.support.gateways import chat, user
from tests.support.waiting import until

ADMIN = {"authorization": "Bearer the-admin-token"}


@dataclass(slots=True)
class Stand:
    engine: FakeEngine
    process: Running
    client: aiohttp.ClientSession
    journals: Path
    secret: str = ""

    async def open(self) -> int:
        async with self.client.post("/sessions", json={"session_id": "mine"}, headers=ADMIN) as response:
            if response.status == 201:
                self.secret = (await response.json())["secret"]
            return response.status

    async def call(self, text: str) -> int:
        headers = {"authorization": f"Bearer {self.secret}"}
        async with self.client.post("/s/mine/v1/chat/completions", json=chat(user(text)), headers=headers) as response:
            await response.read()
            return response.status

    def signal(self) -> None:
        self.process.process.send_signal(signal.SIGTERM)

    async def draining(self) -> None:
        """It has taken note of the signal."""
        async with asyncio.timeout(90):
            while True:
                async with self.client.get("/health") as response:
                    if response.status == 503:
                        return
                await asyncio.sleep(0.02)

    async def ended(self) -> tuple[int | None, bytes]:
        _, said = await asyncio.wait_for(self.process.process.communicate(), 90)
        return self.process.process.returncode, said


@contextlib.asynccontextmanager
async def stand(engine: FakeEngine, directory: Path, **changes: Any) -> AsyncIterator[Stand]:
    settings = serve_settings(engine, directory, admin_token="the-admin-token", **changes)
    async with running(settings, stderr=PIPE) as process, aiohttp.ClientSession(process.url) as client:
        made = Stand(engine, process, client, directory / "journals")
        assert await made.open() == 201
        yield made


async def test_calls_in_flight_end_and_new_ones_are_refused(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, drain_seconds=90.0) as own:
        engine.delay = 10.0
        call = asyncio.create_task(own.call("hi"))
        await until(lambda: engine.running == 1)
        own.signal()
        await own.draining()
        assert await own.call("ho") == 503
        assert await own.open() == 503
        assert await call == 200
        code, said = await own.ended()
    assert code == 0
    assert b"1 calls may end within 90 s; signal again to cut them off" in said
    recovered = recover(own.journals / "mine.journal")
    assert recovered.closed == {"ended": "gateway closed"}
    assert [turn.status for turn in recovered.forest.turns] == [Status.KEPT]
    assert (recovered.torn, recovered.damage) == (0, None)


@pytest.mark.parametrize("twice", [True, False], ids=["second signal", "time is up"])
async def test_a_call_without_end_is_cut_off(engine: FakeEngine, tmp_path: Path, twice: bool) -> None:
    async with stand(engine, tmp_path, drain_seconds=3600.0 if twice else 0.3) as own:
        engine.delay = 3600
        call = asyncio.create_task(own.call("hi"))
        await until(lambda: engine.running == 1)
        own.signal()
        if twice:
            await own.draining()
            assert not call.done()
            own.signal()
        assert await asyncio.wait_for(call, 90) == 503
        code, _ = await own.ended()
    assert code == 0
    assert engine.running == 0
    assert recover(own.journals / "mine.journal").closed == {"ended": "gateway closed"}


async def test_weights_are_updated_over_http(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path) as own:
        async with own.client.post("/admin/inference/pause?timeout_seconds=5", headers=ADMIN) as response:
            assert await response.json() == {"paused": True, "policy_version": None, "generating": 0}
        call = asyncio.create_task(own.call("hi"))
        await asyncio.sleep(0.3)
        assert engine.served == []
        async with own.client.post("/admin/inference/resume?policy_version=8", headers=ADMIN) as response:
            assert (await response.json())["policy_version"] == "8"
        assert await call == 200
        engine.delay = 3600
        call = asyncio.create_task(own.call("ho"))
        await until(lambda: engine.running == 1)
        async with own.client.post("/admin/inference/pause?timeout_seconds=0.1", headers=ADMIN) as response:
            assert response.status == 504
            assert "1 generations are still in flight" in (await response.json())["detail"]
        for path in ("pause", "resume"):
            async with own.client.post(f"/admin/inference/{path}") as response:
                assert response.status == 401
        async with own.client.get("/admin/inference/status", headers=ADMIN) as response:
            assert await response.json() == {"paused": False, "policy_version": "8", "generating": 1}
        own.signal()
        own.signal()
        call.cancel()


async def test_logs_are_json_with_session_ids_and_without_keys(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, log_format="json", log_level="debug") as own:
        engine.faults.append("500")
        assert await own.call("hi") == 502
        headers = {"x-api-key": own.secret, "authorization": f"Bearer {own.secret}"}
        for url in (f"/s/mine/v1/nowhere?key={own.secret}", f"/s/mine/{own.secret}"):
            async with own.client.get(url, headers=headers) as response:
                assert response.status == 404
        own.signal()
        _, said = await own.ended()
    lines = [orjson.loads(line) for line in said.splitlines() if line.startswith(b"{")]
    about = [line for line in lines if line.get("session_id") == "mine"]
    assert any("CUDA error" in line["message"] and line["level"] == "warning" for line in about)
    assert any("502 after" in line["message"] for line in about)
    for secret in (own.secret, "the-admin-token"):
        assert secret.encode() not in said
