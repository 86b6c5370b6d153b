# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Streams: headers early, keep-alives while the engine works, and an end that is either whole or a reset."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from nemo_gym_polar.chat import Conversation
from nemo_gym_polar.engines.factory import TokensMode
from nemo_gym_polar.forest.turn import Status
from nemo_gym_polar.gateway import Session
from nemo_gym_polar.tokens import Int32
from tests.support.fake_engine import FakeEngine, bash
from tests.support.gateways import Bench, bench, chat, user


def events(raw: bytes) -> list[Any]:
    lines = [line[6:] for line in raw.decode().split("\n\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [orjson.loads(line) for line in lines[:-1]]


async def test_a_stream_says_what_was_sampled_in_several_deltas(stand: Bench) -> None:
    command = "echo " + "word " * 30
    stand.engine.script = lambda _: (
        "Some words first, quite a few of them so that there is more to cut. " + bash(command)
    )
    session = await stand.gateway.open()
    reply = await stand.post(session, chat(user("go"), stream=True, stream_options={"include_usage": True}))
    assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    chunks = events(reply.body)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert deltas[0]["role"] == "assistant"
    assert sum("content" in delta for delta in deltas) > 2
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert len(calls) > 2
    assert calls[0]["function"]["name"] == "bash"
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert orjson.loads(arguments) == {"command": command}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["choices"] == []
    turn = session.forest[0]
    assert chunks[-1]["usage"]["prompt_tokens"] == turn.context_length
    assert chunks[-1]["usage"]["completion_tokens"] == len(turn.sampled)
    assert {chunk["id"] for chunk in chunks} == {turn.response_id}


async def test_usage_comes_only_when_asked(stand: Bench) -> None:
    session = await stand.gateway.open()
    reply = await stand.post(session, chat(user("go"), stream=True))
    assert all("usage" not in chunk for chunk in events(reply.body))


async def test_headers_and_keep_alives_come_while_the_engine_works(stand: Bench) -> None:
    stand.engine.delay = 0.8
    session = await stand.gateway.open()
    started = time.monotonic()
    async with _post(stand, session) as response:
        assert time.monotonic() - started < 0.7
        raw = await response.read()
    assert raw.count(b": keep-alive\n\n") >= 2
    assert raw.index(b": keep-alive") < raw.index(b"data:")
    assert events(raw)


async def test_an_engine_that_fails_early_gives_a_status(stand: Bench) -> None:
    stand.engine.faults.append("429")
    session = await stand.gateway.open()
    reply = await stand.post(session, chat(user("go"), stream=True))
    assert reply.status == 429
    assert reply.headers["Retry-After"] == "7"
    assert reply.error["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize("fault", ["500", "nan", "no_ids"])
async def test_an_engine_that_fails_late_resets_the_connection(stand: Bench, fault: Any) -> None:
    stand.engine.delay = 0.6
    stand.engine.faults.append(fault)
    session = await stand.gateway.open()
    seen = await _raw(stand, session)
    assert seen.data.startswith(b"HTTP/1.1 200 OK")
    assert b"data:" not in seen.data
    assert seen.was_reset
    assert [turn.status for turn in session.forest.turns] == [Status.FAILED]
    stand.engine.delay = 0
    assert (await stand.post(session, chat(user("go")))).status == 200


async def test_over_a_unix_socket_a_broken_stream_is_cut(engine: FakeEngine, tmp_path: Path) -> None:
    engine.delay = 0.3
    engine.faults.append("500")
    uds = tmp_path / "gateway.sock"
    async with bench(engine, tmp_path / "j", uds=uds, header_grace=0.05) as stand:
        session = await stand.gateway.open()
        connector = aiohttp.UnixConnector(str(uds))
        async with aiohttp.ClientSession(connector=connector) as client:
            with pytest.raises(aiohttp.ClientError):
                async with client.post(
                    f"http://gateway{session.path}/v1/chat/completions",
                    json=chat(user("go"), stream=True),
                    headers={"authorization": f"Bearer {session.secret}"},
                ) as response:
                    assert response.status == 200
                    await response.read()
    assert not uds.exists()


def _post(stand: Bench, session: Session) -> Any:
    return stand.client.post(
        stand.server.url + session.path + "/v1/chat/completions",
        json=chat(user("go"), stream=True),
        headers={"authorization": f"Bearer {session.secret}"},
    )


class Seen:
    def __init__(self, data: bytes, *, was_reset: bool) -> None:
        self.data = data
        self.was_reset = was_reset


async def _raw(stand: Bench, session: Session) -> Seen:
    """The bytes of an answer as a plain socket sees them."""
    body = orjson.dumps(chat(user("go"), stream=True))
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.server.port)
    head = (
        f"POST {session.path}/v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
        f"authorization: Bearer {session.secret}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    data = b""
    try:
        while chunk := await reader.read(65536):
            data += chunk
    except ConnectionResetError:
        return Seen(data, was_reset=True)
    finally:
        writer.close()
    return Seen(data, was_reset=False)


async def test_a_long_context_that_takes_its_time_still_has_its_own_status(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a reset, agents would ask the same again."""
    async with bench(engine, tmp_path / "j", header_grace=0.05, keep_alive=0.05, context_tokens=64) as stand:
        assert isinstance(stand.gateway.mode, TokensMode)
        rendering = stand.gateway.mode.rendering
        rendered = rendering.prompt

        async def slowly(conversation: Conversation) -> Int32:
            await asyncio.sleep(0.4)
            return await rendered(conversation)

        monkeypatch.setattr(rendering, "prompt", slowly)
        reply = await stand.post(await stand.gateway.open(), chat(user("word " * 100), stream=True))
    assert reply.status == 400
    assert reply.error["code"] == "context_length_exceeded"
