# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway by itself: sessions over HTTP, one session without a token, and refusals in one line."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from pydantic import ValidationError

from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.gateway.standalone import ServeSettings, serve_gateway
from tests.support.fake_engine import FakeEngine
from tests.support.gateway_process import running, serve_settings
from tests.support.gateways import chat, user

ADMIN = {"authorization": "Bearer admin"}


async def test_sessions_over_http(engine: FakeEngine, tmp_path: Path) -> None:
    async with (
        running(serve_settings(engine, tmp_path, admin_token="admin")) as gateway,
        aiohttp.ClientSession(gateway.url) as client,
    ):
        asked = {"session_id": "mine", "max_turns": 2, "timeout": 60, "metadata": {"task": 1}}
        async with client.post("/sessions", json=asked, headers=ADMIN) as response:
            assert response.status == 201
            session = await response.json()
        assert session["base_url"] == f"{gateway.url}/s/mine"
        async with client.post("/sessions", json=asked, headers=ADMIN) as response:
            assert response.status == 409
        key = {"authorization": f"Bearer {session['secret']}"}
        for status in (200, 200, 400):
            url = session["base_url"] + "/v1/chat/completions"
            async with client.post(url, json=chat(user(str(status))), headers=key) as response:
                assert response.status == status
        async with client.get("/sessions/mine", headers=ADMIN) as response:
            assert (await response.json())["turns"] == 2
        async with client.delete("/sessions/mine", headers=ADMIN) as response:
            finished = await response.json()
        async with client.delete("/sessions/mine", headers=ADMIN) as response:
            assert response.status == 404
    traces = _lines(Path(finished["traces"]))
    sampled = sum(len(served.sampled) for served in engine.served)
    assert finished["trained_tokens"] + sum(finished["dropped"].values()) == sampled
    assert all(len(trace["token_ids"]) == len(trace["loss_mask"]) == len(trace["logprobs"]) for trace in traces)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": "admin"}])
async def test_management_wants_the_token(engine: FakeEngine, tmp_path: Path, headers: dict[str, str]) -> None:
    async with (
        running(serve_settings(engine, tmp_path, admin_token="admin")) as gateway,
        aiohttp.ClientSession(gateway.url) as client,
        client.post("/sessions", json={}, headers=headers) as response,
    ):
        assert response.status == 401


async def test_without_a_token_there_is_one_session(engine: FakeEngine, tmp_path: Path) -> None:
    async with (
        running(serve_settings(engine, tmp_path)) as gateway,
        aiohttp.ClientSession() as client,
    ):
        key = {"authorization": f"Bearer {gateway.key}"}
        async with client.post(f"{gateway.url}/sessions", json={}, headers=key) as response:
            assert response.status == 404
        async with client.post(
            f"{gateway.base_url}/v1/chat/completions", json=chat(user("hi")), headers=key
        ) as response:
            assert response.status == 200
        gateway.process.send_signal(signal.SIGTERM)
        out, _ = await asyncio.wait_for(gateway.process.communicate(), 90)
        assert gateway.process.returncode == 0
    assert out.decode().startswith("1 turns, 3 tokens to train on: ")
    assert len(list((tmp_path / "traces").glob("*.jsonl"))) == 1


async def test_a_broken_stream_is_reset_under_uvloop_too(engine: FakeEngine, tmp_path: Path) -> None:
    settings = serve_settings(engine, tmp_path)
    hasty = settings.gateway.model_copy(update={"header_grace": 0.05})
    engine.delay = 0.3
    engine.faults.append("500")
    async with running(settings.model_copy(update={"gateway": hasty})) as gateway:
        host, port = gateway.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = orjson.dumps(chat(user("go"), stream=True))
        path = gateway.base_url.removeprefix(gateway.url)
        head = f"POST {path}/v1/chat/completions HTTP/1.1\r\nauthorization: Bearer {gateway.key}\r\nhost: x\r\n"
        writer.write(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
        with pytest.raises(ConnectionResetError):
            while await reader.read(65536):
                pass
        writer.close()


def test_other_machines_are_let_in_only_with_a_token(tmp_path: Path, engine: FakeEngine) -> None:
    fields = serve_settings(engine, tmp_path).model_dump()
    for host in ("0.0.0.0", "::", "192.168.1.5", "node17"):
        with pytest.raises(ValidationError, match=r"set admin_token, or use 127\.0\.0\.1"):
            ServeSettings(**{**fields, "host": host})
        ServeSettings(**{**fields, "host": host, "admin_token": "secret"})


async def test_a_taken_port_is_one_clear_line(engine: FakeEngine, tmp_path: Path) -> None:
    settings = serve_settings(engine, tmp_path, port=engine.port)
    with pytest.raises(OSError, match=f"can't listen on 127.0.0.1:{engine.port}.*choose another port"):
        await serve_gateway(settings)


async def test_a_dead_engine_is_one_clear_line(engine: FakeEngine, tmp_path: Path) -> None:
    settings = serve_settings(engine, tmp_path)
    await engine.__aexit__(None, None, None)
    with pytest.raises(EngineError, match=f"No engine answered at {engine.url}"):
        await serve_gateway(settings)


def test_the_gateway_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys, nemo_gym_polar.gateway, nemo_gym_polar.gateway.standalone\n"
        "heavy = {'torch', 'transformers', 'vllm', 'megatron', 'renderers', 'ray', 'jax'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    started = time.process_time()
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert time.process_time() - started < 5
