# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A session whose budget has run out: told so in its dialect, marked, and nothing of it trained on."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.forest.audit import audit
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Flag, Status
from nemo_gym_polar.gateway import Gateway, Session
from nemo_gym_polar.gateway.budget import WORDS
from tests.support.dialect_calls import Ask, asks
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import Bench, Reply, bench, chat, user

STOPS = {"chat": "stop", "responses": "completed", "messages": "end_turn", "generate_content": "STOP"}
every_ask = pytest.mark.parametrize(
    "ask", asks(), ids=lambda ask: f"{ask.dialect}-{'stream' if ask.stream else 'whole'}"
)


async def post(stand: Bench, session: Session, ask: Ask) -> Reply:
    return await stand.post(session, ask.body, path=ask.path)


def counted(gateway: Gateway, line: str) -> bool:
    return line in gateway.metrics.text().decode().splitlines()


@every_ask
async def test_an_error_is_final_in_every_dialect(stand: Bench, ask: Ask) -> None:
    session = await stand.gateway.open(max_turns=1)
    assert (await post(stand, session, ask)).status == 200
    refused = await post(stand, session, ask)
    assert (refused.status, "Retry-After" in refused.headers) == (400, False)
    assert refused.error["message"] == "This session has used its 1 turns."
    assert len(session.forest) == len(stand.engine.served) == 1


@every_ask
async def test_an_answer_is_whole_in_every_dialect(stand: Bench, ask: Ask) -> None:
    session = await stand.gateway.open(max_turns=1, when_exhausted="answer")
    assert ask.answer(await post(stand, session, ask))[0] == "Done."
    for _ in range(2):
        last = await post(stand, session, ask)
        assert last.status == 200
        assert ask.answer(last) == ("This session has used its 1 turns.", STOPS[ask.dialect])
    assert len(stand.engine.served) == 1
    forest = await stand.gateway.finish(session.id)
    sampled, *told = forest.turns
    assert [(turn.status, turn.flags, len(turn.sampled)) for turn in told] == 2 * [
        (Status.FAILED, frozenset({Flag.EXHAUSTED}), 0)
    ]
    built = build(forest)
    assert built.trained_tokens + sum(built.dropped.values()) == len(sampled.sampled)
    assert audit(forest, built.traces, built.dropped) == []


@every_ask
async def test_a_deadline_in_the_middle_of_a_call(engine: FakeEngine, tmp_path: Path, ask: Ask) -> None:
    """A stream has begun by then; the last answer is its end."""
    engine.delay = 60
    async with bench(engine, tmp_path / "journals", header_grace=0.05, keep_alive=0.05) as stand:
        session = await stand.gateway.open(deadline=time.monotonic() + 0.4, when_exhausted="answer")
        reply = await post(stand, session, ask)
        assert ask.answer(reply) == ("This session's deadline has passed.", STOPS[ask.dialect])
        exhausted = session.budget.exhausted
    assert exhausted is not None
    assert exhausted.budget == "seconds"
    assert exhausted.used >= exhausted.limit


async def test_the_journal_says_what_ran_out_and_by_how_much(stand: Bench) -> None:
    session = await stand.gateway.open(max_turns=1, when_exhausted="answer")
    await stand.post(session, chat(user("hi")))
    await stand.post(session, chat(user("ho"), n=2))
    await stand.post(session, chat(user("hu")))
    await stand.gateway.finish(session.id, {"harness": "left"})
    recovered = recover(stand.journals / f"{session.id}.journal")
    exhausted = {"budget": "turns", "limit": 1, "used": 3, "over": 2}
    assert recovered.closed == {"harness": "left", "exhausted": exhausted}
    assert [turn.flags for turn in recovered.forest.turns] == [set(), {Flag.EXHAUSTED}, {Flag.EXHAUSTED}]
    assert counted(stand.gateway, 'polar_budget_refusals_total{budget="turns",told="answer"} 2.0')
    assert counted(stand.gateway, 'polar_exhausted_sessions_total{budget="turns"} 1.0')


async def test_several_answers_were_asked_for(stand: Bench) -> None:
    session = await stand.gateway.open(max_turns=1, when_exhausted="answer")
    reply = await stand.post(session, chat(user("hi"), n=3))
    assert [choice["message"]["content"] for choice in reply.json["choices"]] == 3 * [
        "This session has used its 1 turns."
    ]


async def test_a_stored_last_answer_can_be_read_again(stand: Bench) -> None:
    session = await stand.gateway.open(max_turns=1, when_exhausted="answer")
    ask: dict[str, Any] = {"model": "m", "input": "hi", "store": True}
    await stand.post(session, ask, path="/v1/responses")
    last = await stand.post(session, ask, path="/v1/responses")
    headers = {"authorization": f"Bearer {session.secret}"}
    url = f"{stand.server.url}{session.path}/v1/responses/{last.json['id']}"
    async with stand.client.get(url, headers=headers) as again:
        assert (await again.json())["output"] == last.json["output"]


@pytest.mark.parametrize("mode", ["tokens", "chat"])
async def test_the_largest_context(engine: FakeEngine, tmp_path: Path, mode: Any) -> None:
    """A call that reads less goes on: only the one that is too large is refused."""
    async with bench(engine, tmp_path / "journals", mode=mode) as stand:
        session = await stand.gateway.open(max_context_tokens=400)
        assert (await stand.post(session, chat(user("hi")))).status == 200
        large = await stand.post(session, chat(user("word " * 500)))
        assert (large.status, large.error["code"]) == (400, "session_budget_exhausted")
        assert (await stand.post(session, chat(user("ho")))).status == 200
        exhausted = session.budget.exhausted
    assert exhausted is not None
    assert (exhausted.budget, exhausted.limit) == ("context_tokens", 400)
    assert exhausted.used > 500
    assert len(engine.served) == 2


@pytest.mark.parametrize("mode", ["tokens", "chat"])
async def test_all_that_is_read(engine: FakeEngine, tmp_path: Path, mode: Any) -> None:
    async with bench(engine, tmp_path / "journals", mode=mode) as stand:
        whole = await stand.gateway.open()
        await stand.post(whole, chat(user("hi")))
        length = len(engine.served[0].context)
        session = await stand.gateway.open(max_read_tokens=2 * length)
        statuses = [(await stand.post(session, chat(user("hi"), tools=chat()["tools"]))).status for _ in range(3)]
        assert statuses == [200, 200, 400]
        assert session.budget.read == 2 * length
        exhausted = session.budget.exhausted
    assert exhausted is not None
    assert exhausted.plain() == {
        "budget": "read_tokens", "limit": 2 * length, "used": 3 * length, "over": length
    }  # fmt: skip


def test_no_message_looks_like_a_context_that_is_too_long() -> None:
    """OpenCode and others make room and ask again on such words, without end."""
    marks = ("context length", "context window", "too long", "token limit", "exceed", "reduce the length", "maximum")
    assert not [said for said in WORDS.values() if any(mark in said.lower() for mark in marks)]


async def test_calls_beyond_the_concurrent_ones_wait(stand: Bench) -> None:
    session = await stand.gateway.open(max_calls=2)
    stand.engine.delay = 0.1
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, stand.engine.running)
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    replies = await asyncio.gather(*[stand.post(session, chat(user(str(i)))) for i in range(6)])
    watching.cancel()
    assert {reply.status for reply in replies} == {200}
    assert most == 2
