# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Frozen helper models: answered in the harness's dialect, and no part of what is trained."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from nemo_gym_polar.engines.factory import make_engine
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.gateway import Gateway, GatewaySettings
from tests.support.fake_engine import FakeEngine, bash
from tests.support.fake_helper import FakeHelper
from tests.support.gateways import Bench, bench, chat, engine_settings, result, user


@pytest.fixture
async def helper() -> AsyncIterator[FakeHelper]:
    async with FakeHelper() as helper:
        yield helper


def fields(helper: FakeHelper) -> dict[str, Any]:
    return {"helpers": {"fast": {"url": helper.url, "model": "small-1", "api_key": helper.key}}}


@pytest.fixture(params=["tokens", "chat"])
async def helped(
    request: pytest.FixtureRequest, engine: FakeEngine, helper: FakeHelper, tmp_path: Path
) -> AsyncIterator[Bench]:
    mode: Literal["tokens", "chat"] = request.param
    async with bench(engine, tmp_path / "journals", mode=mode, engine_fields=fields(helper)) as stand:
        yield stand


def asking(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**chat(*messages, **more), "model": "fast"}


async def test_its_words_go_back_and_leave_no_turn(helped: Bench, helper: FakeHelper) -> None:
    session = await helped.gateway.open(max_turns=1)
    body = asking(user("Name this."), temperature=0.2, top_p=0.5, max_tokens=9, seed=4, tool_choice="none")
    reply = await helped.post(session, body)
    assert (reply.status, reply.message["content"], reply.json["model"]) == (200, "A title.", "fast")
    assert reply.json["usage"]["prompt_tokens"] == 11
    assert reply.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 2
    (asked,) = helper.requests
    wanted = {"model": "small-1", "temperature": 0.2, "top_p": 0.5, "max_tokens": 9, "seed": 4, "tool_choice": "none"}
    assert {name: asked[name] for name in wanted} == wanted
    assert not {"logprobs", "return_token_ids", "top_k"} & asked.keys()
    assert len(session.forest) == 0
    assert 'polar_helper_calls_total{alias="fast"} 1.0' in helped.gateway.metrics.text().decode()
    # It took no turn of the budget.
    assert (await helped.post(session, chat(user("Work.")))).status == 200
    assert len(session.forest) == 1
    await helped.gateway.finish(session.id)
    assert len(read_journal(helped.journals / f"{session.id}.journal").turns) == 1


async def test_the_policy_s_chain_goes_on_past_it(helped: Bench, helper: FakeHelper) -> None:
    helped.engine.script = lambda text: "Done." if "<tool_response>" in text else bash("ls")
    session = await helped.gateway.open()
    first = await helped.post(session, chat(user("Look.")))
    await helped.post(session, asking(user("Look."), first.message, user("A title, please.")))
    answer = result(first.message["tool_calls"][0]["id"], "a b")
    await helped.post(session, chat(user("Look."), first.message, answer))
    forest = await helped.gateway.finish(session.id)
    assert [turn.edge for turn in forest.turns] == [Edge.ROOT, Edge.CONTINUE]
    (trace,) = build(forest).traces
    assert trace.trained_tokens == sum(len(served.sampled) for served in helped.engine.served)


async def test_what_it_said_is_context_and_never_loss(helped: Bench, helper: FakeHelper) -> None:
    """Its answer stands in the history that the policy reads next."""
    helped.engine.script = lambda _: "I see."
    session = await helped.gateway.open()
    first = await helped.post(session, chat(user("Look."), tools=[]))
    history = [user("Look."), first.message, user("Ask around.")]
    second = await helped.post(session, asking(*history, tools=[]))
    third = await helped.post(session, chat(*history, second.message, user("Go on."), tools=[]))
    assert third.status == 200
    forest = await helped.gateway.finish(session.id)
    assert len(forest) == 2
    served = helped.engine.served
    assert "A title." in helped.engine.decoded(served[1].context)
    assert forest.context(1).tolist() == served[1].context
    traces = build(forest).traces
    trained = [token for trace in traces for token in trace.token_ids[trace.loss_mask].tolist()]
    assert trained == served[0].sampled + served[1].sampled


async def test_its_tool_calls_have_ids_of_ours(helped: Bench, helper: FakeHelper) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    helper.said = {"role": "assistant", "content": None, "tool_calls": [call]}
    session = await helped.gateway.open()
    body = asking(user("Look."), tool_choice={"type": "function", "function": {"name": "bash"}})
    reply = await helped.post(session, body)
    (given,) = reply.message["tool_calls"]
    assert given["id"].startswith("call_")
    assert reply.json["choices"][0]["finish_reason"] == "tool_calls"
    assert helper.requests[0]["tool_choice"] == {"type": "function", "function": {"name": "bash"}}


async def test_every_dialect_and_its_stream(helped: Bench) -> None:
    session = await helped.gateway.open()
    messages = {"model": "fast", "max_tokens": 50, "messages": [user("hi")]}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("/v1/messages", messages),
        ("/v1/responses", {"model": "fast", "input": "hi"}),
        ("/v1beta/models/fast:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
        ("/v1/messages", {**messages, "stream": True}),
        ("/v1/chat/completions", asking(user("hi"), stream=True)),
        ("/v1/chat/completions", asking(user("hi"), n=2)),
    ]
    for path, body in calls:
        reply = await helped.post(session, body, path=path)
        assert (reply.status, b"title." in reply.body) == (200, True), (path, reply.body)
    assert len(session.forest) == 0


async def test_a_stored_answer_can_be_gone_on_from(helped: Bench, helper: FakeHelper) -> None:
    session = await helped.gateway.open()
    first = await helped.post(session, {"model": "fast", "input": "hi", "store": True}, path="/v1/responses")
    going_on = {"model": "fast", "input": "And?", "previous_response_id": first.json["id"]}
    assert (await helped.post(session, going_on, path="/v1/responses")).status == 200
    assert [message["content"] for message in helper.requests[1]["messages"]] == ["hi", "A title.", "And?"]


async def test_the_names_are_listed(helped: Bench) -> None:
    session = await helped.gateway.open()
    headers = {"authorization": f"Bearer {session.secret}"}
    async with helped.client.get(helped.server.url + session.path + "/v1/models", headers=headers) as reply:
        listed = await reply.json()
    assert [model["id"] for model in listed["data"]] == ["polar-policy", "fast"]


@pytest.mark.parametrize(("status", "seen"), [(500, 502), (503, 429), (429, 429), (400, 400)])
async def test_its_outage_is_named_and_no_turn(helped: Bench, helper: FakeHelper, status: int, seen: int) -> None:
    helper.status = status
    session = await helped.gateway.open()
    reply = await helped.post(session, asking(user("hi")))
    assert (reply.status, "out of order" in reply.error["message"]) == (seen, True)
    assert len(session.forest) == 0


async def test_a_wrong_key_and_a_broken_answer_are_errors(helped: Bench, helper: FakeHelper) -> None:
    session = await helped.gateway.open()
    helper.said = {"role": "assistant", "tool_calls": [{"function": None}]}
    assert "can't be read" in (await helped.post(session, asking(user("hi")))).error["message"]
    helper.key = "another"
    assert (await helped.post(session, asking(user("hi")))).status == 502


def test_an_alias_is_no_name_of_the_policy(engine: FakeEngine, helper: FakeHelper, tmp_path: Path) -> None:
    settings = engine_settings(engine, **fields(helper))
    with pytest.raises(ValueError, match=r"engine\.helpers\.fast is also a name of the policy"):
        Gateway(make_engine(settings), GatewaySettings(journals=tmp_path, models=("fast",)))
    with pytest.raises(ValueError, match=r"engine\.helpers\.tiny is the policy's own name"):
        engine_settings(engine, helpers={"tiny": {"url": helper.url, "model": "m"}})
