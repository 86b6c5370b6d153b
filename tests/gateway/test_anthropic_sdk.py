# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Anthropic's client, unmodified: whole answers, streams, tools over several turns, images, counts, errors, retries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from nemo_gym_polar.forest.turn import Cause, Edge
from nemo_gym_polar.gateway import Session
from tests.support.fake_engine import FakeEngine, Fault, bash
from tests.support.gateways import TOOLS as OPENAI_TOOLS
from tests.support.gateways import Bench, bench

FUNCTION = OPENAI_TOOLS[0]["function"]
TOOLS: list[Any] = [
    {"name": "bash", "description": FUNCTION["description"], "input_schema": FUNCTION["parameters"]},
]
HI: list[Any] = [{"role": "user", "content": "hi"}]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


@pytest.fixture
async def session(stand: Bench) -> Session:
    return await stand.gateway.open()


@pytest.fixture
async def client(stand: Bench, session: Session) -> AsyncIterator[anthropic.AsyncAnthropic]:
    url = stand.server.url + session.path
    async with anthropic.AsyncAnthropic(base_url=url, api_key=session.secret, max_retries=2) as client:
        yield client


async def create(client: anthropic.AsyncAnthropic, messages: list[Any], **fields: Any) -> anthropic.types.Message:
    message = await client.messages.create(model="any", max_tokens=200, messages=messages, **fields)
    assert isinstance(message, anthropic.types.Message)
    return message


@pytest.mark.parametrize("stream", [False, True])
async def test_tools_over_several_turns_are_one_chain(
    stand: Bench, session: Session, client: anthropic.AsyncAnthropic, stream: bool
) -> None:
    answers = iter([bash("ls"), bash("touch a") + bash("touch b"), "All done."])
    stand.engine.script = lambda _: next(answers)
    messages: list[Any] = [{"role": "user", "content": "Create two files."}]
    while True:
        if stream:
            async with client.messages.stream(model="any", max_tokens=200, messages=messages, tools=TOOLS) as events:
                message = await events.get_final_message()
        else:
            message = await create(client, messages, tools=TOOLS)
        messages.append({"role": "assistant", "content": [block.model_dump() for block in message.content]})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            break
        assert message.stop_reason == "tool_use"
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls]
        messages.append({"role": "user", "content": results})
    assert message.content[0].type == "text" and message.content[0].text == "All done."
    assert message.stop_reason == "end_turn"
    assert [turn.edge for turn in session.forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
    assert session.forest.tokens(2).tolist() == stand.engine.served[2].context + stand.engine.served[2].sampled
    usage = message.usage
    read = usage.input_tokens + (usage.cache_read_input_tokens or 0)
    assert (read, usage.output_tokens) == (len(stand.engine.served[2].context), len(stand.engine.served[2].sampled))
    assert usage.cache_read_input_tokens == session.forest[2].shared


async def test_a_stream_accumulates_to_the_same_message(
    stand: Bench, session: Session, client: anthropic.AsyncAnthropic
) -> None:
    stand.engine.script = lambda _: "Let me look at the files that are here, one by one.\n" + bash("ls -la")
    async with client.messages.stream(model="any", max_tokens=200, messages=HI, tools=TOOLS) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_message()
    assert kinds.count("text") > 1 and "input_json" in kinds
    text, call = final.content
    assert text.type == "text" and text.text == "Let me look at the files that are here, one by one."
    assert call.type == "tool_use" and call.input == {"command": "ls -la"}
    assert final.usage.output_tokens == len(session.forest[0].sampled)


async def test_pings_may_come_before_the_message(
    stand: Bench, session: Session, client: anthropic.AsyncAnthropic
) -> None:
    stand.engine.delay = 1.0
    async with client.messages.stream(model="any", max_tokens=200, messages=HI) as stream:
        assert await stream.get_final_text() == "Done."


async def test_the_synchronous_client(stand: Bench, session: Session) -> None:
    def talk() -> tuple[str, str]:
        with anthropic.Anthropic(base_url=stand.server.url + session.path, api_key=session.secret) as one:
            whole = one.messages.create(model="any", max_tokens=50, messages=HI)
            with one.messages.stream(model="any", max_tokens=50, messages=HI) as stream:
                return "".join(block.text for block in whole.content if block.type == "text"), stream.get_final_text()

    assert await asyncio.to_thread(talk) == ("Done.", "Done.")


async def test_the_secret_as_a_bearer_token(stand: Bench, session: Session) -> None:
    url = stand.server.url + session.path
    async with anthropic.AsyncAnthropic(base_url=url, auth_token=session.secret, api_key=None) as client:
        assert (await create(client, HI)).content


async def test_a_limit_and_a_stop_sequence(stand: Bench, client: anthropic.AsyncAnthropic) -> None:
    stand.engine.script = lambda _: "word " * 100
    cut = await client.messages.create(model="any", max_tokens=5, messages=HI)
    assert (cut.stop_reason, cut.usage.output_tokens) == ("max_tokens", 5)


async def test_tools_found_on_the_way_leave_the_prompt_as_it_was(
    stand: Bench, session: Session, client: anthropic.AsyncAnthropic
) -> None:
    """Tool search, in the shapes that Claude Code sends."""
    later = {**TOOLS[0], "name": "late", "defer_loading": True}
    answers = iter([bash("find a tool"), bash("ls").replace("=bash", "=late"), "Done."])
    stand.engine.script = lambda _: next(answers)
    messages = list(HI)
    for found in ([{"type": "tool_reference", "tool_name": "late"}], "ok"):
        tools = TOOLS if len(messages) == 1 else [later, *TOOLS]
        message = await create(client, messages, tools=tools)
        (call,) = message.content
        assert call.type == "tool_use"
        messages.append({"role": "assistant", "content": [call.model_dump()]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": found}]}
        )
    assert call.name == "late"
    await create(client, messages, tools=[later, *TOOLS])
    assert [turn.edge for turn in session.forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]


async def test_tools_that_change_begin_a_chain_with_their_cause(
    stand: Bench, session: Session, client: anthropic.AsyncAnthropic
) -> None:
    message = await create(client, HI, tools=TOOLS)
    messages = [*HI, {"role": "assistant", "content": message.content[0].text}, *HI]  # type: ignore[union-attr]  # text
    await create(client, messages, tools=[{**TOOLS[0], "description": "Other."}])
    assert (session.forest[1].edge, session.forest[1].cause) == (Edge.ROOT, Cause.TOOLS_CHANGED)


async def test_an_image_in_tokens_mode_is_refused_clearly(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"engine\.mode=chat"):
        await create(client, [{"role": "user", "content": [IMAGE]}])


async def test_an_image_reaches_an_engine_that_renders_itself(engine: FakeEngine, tmp_path: Path) -> None:
    """The scripted one reads no images and says so, with what it was sent."""
    async with bench(engine, tmp_path / "journals", mode="chat") as stand:
        session = await stand.gateway.open()
        url = stand.server.url + session.path
        async with anthropic.AsyncAnthropic(base_url=url, api_key=session.secret) as client:
            with pytest.raises(anthropic.BadRequestError) as refused:
                await create(client, [{"role": "user", "content": [{"type": "text", "text": "See:"}, IMAGE]}])
        assert f"data:image/png;base64,{PIXEL}" in str(refused.value)


async def test_counting_is_exact_and_no_generation(
    stand: Bench, session: Session, client: anthropic.AsyncAnthropic
) -> None:
    counted = await client.messages.count_tokens(model="any", messages=HI, tools=TOOLS, system="Be brief.")
    assert not stand.engine.served
    await create(client, HI, tools=TOOLS, system="Be brief.")
    assert counted.input_tokens == len(stand.engine.served[0].context)


async def test_errors_are_the_client_s_own(stand: Bench, session: Session, client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="at least one message"):
        await create(client, [])
    with pytest.raises(anthropic.AuthenticationError) as unknown:
        await create(client.with_options(api_key="wrong"), HI)
    assert unknown.value.body["error"]["type"] == "authentication_error"  # type: ignore[index,call-overload]  # a dict
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.batches.list()
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 4096 maximum"):
        await create(client, [{"role": "user", "content": "word " * 5000}])
    assert not stand.engine.served


async def test_overload_says_when_to_come_back(stand: Bench, client: anthropic.AsyncAnthropic) -> None:
    stand.engine.faults.append("429")
    with pytest.raises(anthropic.RateLimitError) as busy:
        await create(client.with_options(max_retries=0), HI)
    assert busy.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["500", "nan"])
async def test_the_client_retries_what_it_should(
    stand: Bench, session: Session, client: anthropic.AsyncAnthropic, stream: bool, fault: Fault
) -> None:
    stand.engine.faults.append(fault)
    if stream:
        async with client.messages.stream(model="any", max_tokens=20, messages=HI) as events:
            assert await events.get_final_text() == "Done."
    else:
        assert (await create(client, HI)).stop_reason == "end_turn"
    assert len(stand.engine.served) == 1
    assert sum(len(turn.sampled) for turn in session.forest.turns) == len(stand.engine.served[0].sampled)


async def test_models(client: anthropic.AsyncAnthropic) -> None:
    assert [model.id async for model in client.models.list()] == ["polar-policy"]
    assert (await client.models.retrieve("x")).display_name == "x"


async def test_hello_is_answered_to_anyone(stand: Bench, session: Session) -> None:
    for path in ("/api/hello", session.path + "/api/hello"):
        async with stand.client.head(stand.server.url + path) as response:
            assert response.status == 200
