# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A harness that leaves, a deadline that comes, a session that ends while calls are in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.forest.turn import Edge, Flag, Status
from nemo_gym_polar.gateway import Session
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import Bench, bench, chat, user


@pytest.mark.parametrize("stream", [False, True])
async def test_a_harness_that_leaves_stops_the_engine(stand: Bench, stream: bool) -> None:
    stand.engine.delay = 60
    session = await stand.gateway.open()
    with pytest.raises(TimeoutError):
        await _impatient(stand, session, stream=stream)
    await _until(lambda: stand.engine.aborted == 1)
    await _until(lambda: not session.calls)
    assert len(session.forest) == 0
    stand.engine.delay = 0
    assert (await stand.post(session, chat(user("hi")))).status == 200


async def test_a_deadline_ends_a_call_in_time(stand: Bench) -> None:
    stand.engine.delay = 60
    session = await stand.gateway.open(deadline=time.monotonic() + 0.2)
    reply = await stand.post(session, chat(user("hi")))
    assert reply.status == 400
    assert reply.error["code"] == "session_budget_exhausted"
    assert "deadline" in reply.error["message"]
    await _until(lambda: stand.engine.aborted == 1)
    assert (await stand.post(session, chat(user("hi")))).error["code"] == "session_budget_exhausted"


async def test_finish_cuts_off_what_is_in_flight(stand: Bench) -> None:
    stand.engine.delay = 60
    session = await stand.gateway.open()
    call = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await _until(lambda: stand.engine.running == 1)
    forest = await asyncio.wait_for(stand.gateway.finish(session.id), 5)
    assert (await call).status == 401
    await _until(lambda: stand.engine.aborted == 1)
    assert len(forest) == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_gateway_that_shuts_down_tells_who_waits(engine: FakeEngine, tmp_path: Path, stream: bool) -> None:
    engine.delay = 60
    async with aiohttp.ClientSession() as client:
        async with bench(engine, tmp_path / "j", header_grace=30) as stand:
            session = await stand.gateway.open()
            headers = {"authorization": f"Bearer {session.secret}"}
            url = stand.server.url + session.path + "/v1/chat/completions"
            call = asyncio.create_task(client.post(url, json=chat(user("hi"), stream=stream), headers=headers))
            await _until(lambda: engine.running == 1)
            started = time.monotonic()
        assert time.monotonic() - started < 3
        async with await call as response:
            assert response.status == 503
            assert response.headers["retry-after"] == "1"


async def test_turns_are_limited(stand: Bench) -> None:
    session = await stand.gateway.open(max_turns=2)
    statuses = [(await stand.post(session, chat(user(str(i))))).status for i in range(3)]
    assert statuses == [200, 200, 400]
    stand.engine.faults.append("500")
    other = await stand.gateway.open(max_turns=1)
    assert (await stand.post(other, chat(user("hi")))).status == 502
    assert (await stand.post(other, chat(user("hi")))).status == 200


async def test_generated_tokens_are_limited(stand: Bench) -> None:
    stand.engine.script = lambda _: "word " * 100
    session = await stand.gateway.open(max_tokens=30)
    reply = await stand.post(session, chat(user("hi"), max_tokens=20))
    assert reply.json["usage"]["completion_tokens"] == 20
    assert reply.json["choices"][0]["finish_reason"] == "length"
    assert (await stand.post(session, chat(user("ho")))).json["usage"]["completion_tokens"] == 10
    last = await stand.post(session, chat(user("hu")))
    assert last.status == 400
    assert "30 generated tokens" in last.error["message"]


async def test_training_values_replace_the_harness_s(stand: Bench) -> None:
    session = await stand.gateway.open()
    body = chat(user("hi"), temperature=0.1, top_p=0.5, top_k=3, max_tokens=50, stop=["END"], seed=7)
    assert (await stand.post(session, body)).status == 200
    asked = stand.engine.served[0].parameters
    wanted = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "max_tokens": 50, "stop": ["END"], "logprobs": 0}
    assert {name: asked[name] for name in wanted} == wanted
    assert "seed" not in asked
    assert session.forest[0].flags == frozenset()


async def test_a_session_may_sample_differently_and_is_flagged(stand: Bench) -> None:
    session = await stand.gateway.open(sampling=Sampling(temperature=0.0))
    await stand.post(session, chat(user("hi"), temperature=1.0))
    assert stand.engine.served[0].parameters["temperature"] == 0.0
    assert session.forest[0].flags == {Flag.TEMPERATURE}


async def test_too_many_calls_are_429(stand: Bench) -> None:
    stand.gateway.settings = stand.gateway.settings.model_copy(update={"max_calls": 1})
    stand.engine.delay = 0.5
    session = await stand.gateway.open()
    first = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await _until(lambda: stand.engine.running == 1)
    second = await stand.post(session, chat(user("ho")))
    assert second.status == 429
    assert second.headers["Retry-After"] == "1"
    assert (await first).status == 200


async def test_parallel_calls_of_a_session_are_all_kept(stand: Bench) -> None:
    stand.engine.delay = 0.05
    session = await stand.gateway.open()
    replies = await asyncio.gather(*[stand.post(session, chat(user(f"agent {i}"))) for i in range(40)])
    assert {reply.status for reply in replies} == {200}
    assert len(session.forest) == 40
    for turn in session.forest.turns:
        twins = [
            served for served in stand.engine.served if served.context == session.forest.context(turn.index).tolist()
        ]
        assert [twin.sampled for twin in twins] == [turn.sampled.tolist()]


async def test_the_same_question_again_reads_the_same_tokens(stand: Bench) -> None:
    session = await stand.gateway.open()
    for _ in range(2):
        assert (await stand.post(session, chat(user("hi")))).status == 200
    first, second = session.forest.turns
    assert second.edge is Edge.RETRY
    assert first.status is Status.UNSEEN
    assert stand.engine.served[0].context == stand.engine.served[1].context


async def _impatient(stand: Bench, session: Session, *, stream: bool) -> None:
    url = stand.server.url + session.path + "/v1/chat/completions"
    headers = {"authorization": f"Bearer {session.secret}"}
    timeout = aiohttp.ClientTimeout(total=0.5)
    async with stand.client.post(
        url, json=chat(user("hi"), stream=stream), headers=headers, timeout=timeout
    ) as response:
        await response.read()


async def _until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)
