# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Chat mode: the engine renders, and a continuation is believed only when its tokens prove it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.forest.turn import Cause, Edge
from tests.support.fake_engine import FakeEngine, bash
from tests.support.gateways import Bench, bench, chat, result, user


@pytest.fixture
async def chatting(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(engine, tmp_path / "journals", mode="chat") as stand:
        yield stand


async def test_what_the_engine_rendered_and_sampled_is_kept(chatting: Bench) -> None:
    answers = iter([bash("ls"), "Done."])
    chatting.engine.script = lambda _: next(answers)
    session = await chatting.gateway.open()
    history: list[dict[str, Any]] = [user("Look.")]
    for _ in range(2):
        reply = await chatting.post(session, chat(*history, temperature=0.2, top_p=0.1))
        assert reply.status == 200
        history.append(reply.message)
        history += [result(call["id"], "a b c") for call in reply.message.get("tool_calls", [])]
    forest = session.forest
    for turn, served in zip(forest.turns, chatting.engine.served, strict=True):
        assert served.path == "/v1/chat/completions"
        assert forest.context(turn.index).tolist() == served.context
        assert turn.sampled.tolist() == served.sampled
        assert served.parameters["temperature"] == 1.0
        assert served.parameters["top_p"] == 1.0
    assert history[1]["tool_calls"][0]["id"].startswith("call_")
    assert history[1]["tool_calls"][0]["id"] != "call_0"


async def test_a_prompt_that_is_no_extension_begins_anew_and_says_why(chatting: Bench) -> None:
    """Arguments that were sampled in an unusual spelling are rendered in the usual one the next time."""
    unusual = "<tool_call>\n<function=bash>\n<parameter=command>\n\n  ls  \n</parameter>\n</function>\n</tool_call>"
    chatting.engine.script = lambda text: "Done." if "<tool_response>" in text else unusual
    session = await chatting.gateway.open()
    first = await chatting.post(session, chat(user("Look.")))
    call = first.message["tool_calls"][0]
    await chatting.post(session, chat(user("Look."), first.message, result(call["id"], "a")))
    turn = session.forest[1]
    assert (turn.edge, turn.parent, turn.cause) == (Edge.ROOT, 0, Cause.ARGUMENTS_CHANGED)
    assert session.forest.context(1).tolist() == chatting.engine.served[1].context


async def test_an_engine_without_ids_is_loud(chatting: Bench) -> None:
    chatting.engine.faults.append("no_ids")
    session = await chatting.gateway.open()
    reply = await chatting.post(session, chat(user("hi")))
    assert reply.status == 502
    assert "return_token_ids" in reply.error["message"]
