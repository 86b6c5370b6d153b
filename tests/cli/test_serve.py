# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar serve` as a process, in front of an engine on the wire."""

from __future__ import annotations

import asyncio
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import orjson
import pytest

from tests.support.commands import command_line, run_command
from tests.support.fake_engine import FakeEngine
from tests.support.fake_helper import FakeHelper
from tests.support.fake_sglang import FakeSGLang
from tests.support.tiny_model import make_model

QUESTION = {"model": "tiny", "messages": [{"role": "user", "content": "Say something."}]}


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[FakeEngine]:
    async with FakeEngine(make_model(tmp_path / "model")) as engine:
        yield engine


def options(engine: FakeEngine) -> list[str]:
    model = ["--model", "tiny", "--tokenizer", str(engine.tokenizer_directory)]
    return ["serve", "--engine", engine.url, *model, "--renderer-options", '{"enable_thinking": false}', "--port", "0"]


async def start(directory: Path, *arguments: str) -> Process:
    line = command_line("polar", *arguments)
    return await asyncio.create_subprocess_exec(*line, cwd=directory, stdout=PIPE, stderr=PIPE)


async def said(process: Process, label: str) -> str:
    """The rest of the line that begins with `label`."""
    assert process.stdout is not None
    async with asyncio.timeout(120):
        async for line in process.stdout:
            if line.decode().startswith(label):
                return line.decode().removeprefix(label).strip()
    assert process.stderr is not None
    raise AssertionError((await process.stderr.read()).decode())


async def test_records_one_session_until_interrupted(engine: FakeEngine, tmp_path: Path) -> None:
    process = await start(tmp_path, *options(engine))
    base, key = await said(process, "base URL"), await said(process, "API key")
    async with (
        aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as client,
        client.post(f"{base}/v1/chat/completions", json=QUESTION) as reply,
    ):
        assert (await reply.json())["choices"][0]["message"]["content"] == "Done."
    process.send_signal(signal.SIGINT)
    stdout, stderr = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == 0
    (logged,) = stderr.decode().splitlines()
    assert logged.startswith('certificate {"tokenizer":')
    assert "1 turns" in stdout.decode()
    (written,) = (tmp_path / "polar/traces").glob("*.jsonl")
    trace = orjson.loads(written.read_bytes())
    (served,) = engine.served
    assert trace["token_ids"] == served.context + served.sampled


async def test_another_kind_of_engine_with_a_helper_beside_it(tmp_path: Path) -> None:
    async with FakeSGLang(make_model(tmp_path / "model")) as engine, FakeHelper() as helper:
        helpers = orjson.dumps({"fast": {"url": helper.url, "model": "small-1", "api_key": helper.key}}).decode()
        process = await start(tmp_path, *options(engine), "--engine-kind", "sglang", "--helpers", helpers)
        base, key = await said(process, "base URL"), await said(process, "API key")
        async with aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as client:
            for model, words in (("tiny", "Done."), ("fast", "A title.")):
                async with client.post(f"{base}/v1/chat/completions", json={**QUESTION, "model": model}) as reply:
                    assert (await reply.json())["choices"][0]["message"]["content"] == words
        process.send_signal(signal.SIGINT)
        stdout, _ = await asyncio.wait_for(process.communicate(), 90)
    assert "1 turns" in stdout.decode()
    assert [served.path for served in engine.served] == ["/generate"]


async def test_makes_sessions_with_an_admin_token(engine: FakeEngine, tmp_path: Path) -> None:
    process = await start(tmp_path, *options(engine), "--admin-token", "hush")
    url = (await said(process, "gateway on")).partition(";")[0]
    async with aiohttp.ClientSession(headers={"authorization": "Bearer hush"}) as client:
        async with client.post(f"{url}/sessions", json={"session_id": "one"}) as reply:
            assert (await reply.json())["session_id"] == "one"
        async with client.delete(f"{url}/sessions/one") as reply:
            assert (await reply.json())["turns"] == 0
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 90) == 0


async def test_a_taken_port_is_one_line(engine: FakeEngine, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = await asyncio.to_thread(run_command, tmp_path, "polar", *options(engine), "--port", port)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "the port is taken" in ended.stderr
    assert port in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--mode", "chat"], 1, "No engine answered at http://127.0.0.1:1"),
        ([], 2, "engine.tokenizer is not set"),
        (["--tokenizer", "nowhere"], 1, "No tokenizer at nowhere/tokenizer.json"),
        (["--mode", "chat", "--host", "0.0.0.0"], 2, "set admin_token"),
        (["--mode", "chat", "--temperature", "hot"], 2, "--temperature"),
        (["--renderer-options", "{x}"], 2, "--renderer-options: '{x}' is not JSON"),
        (["--engine-kind", "nemo_rl"], 1, "No engine answered (http://127.0.0.1:1"),
        (["--engine-kind", "nemo_rl", "--mode", "tokens"], 2, "takes messages only; set engine.mode=chat"),
        (["--engine-kind", "openai"], 1, "No engine answered at http://127.0.0.1:1"),
        (["--engine-kind", "tgi"], 2, "--engine-kind"),
        (["--mode", "chat", "--helpers", "{x}"], 2, "--helpers: '{x}' is not JSON"),
        (["--mode", "chat", "--helpers", '{"fast": {"url": "http://x"}}'], 2, "engine.helpers.fast.model"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    ended = run_command(tmp_path, "polar", "serve", "--engine", "http://127.0.0.1:1", "--port", "0", *arguments)
    assert ended.returncode == code
    assert ended.stderr.count("\n") == 1
    assert words in ended.stderr
