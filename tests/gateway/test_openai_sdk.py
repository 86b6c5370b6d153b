# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The official client, unmodified: whole answers, streams, tools over several turns, errors, models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.gateway import Session
from tests.support.fake_engine import bash
from tests.support.gateways import TOOLS, Bench


@pytest.fixture
async def session(stand: Bench) -> Session:
    return await stand.gateway.open()


@pytest.fixture
async def client(stand: Bench, session: Session) -> AsyncIterator[openai.AsyncOpenAI]:
    url = stand.server.url + session.path + "/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key=session.secret, max_retries=2) as client:
        yield client


async def test_tools_over_several_turns_are_one_chain(
    stand: Bench, session: Session, client: openai.AsyncOpenAI
) -> None:
    answers = iter([bash("ls"), bash("touch a") + bash("touch b"), "All done."])
    stand.engine.script = lambda _: next(answers)
    messages: list[Any] = [{"role": "user", "content": "Create two files."}]
    while True:
        completion = await client.chat.completions.create(model="any", messages=messages, tools=TOOLS)  # type: ignore[arg-type]  # plain dicts
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in message.tool_calls]
    assert message.content == "All done."
    assert [turn.edge for turn in session.forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
    assert session.forest.tokens(2).tolist() == stand.engine.served[2].context + stand.engine.served[2].sampled


async def test_a_stream_accumulates_to_the_same_message(
    stand: Bench, session: Session, client: openai.AsyncOpenAI
) -> None:
    stand.engine.script = lambda _: "Let me look at the files that are here, one by one.\n" + bash("ls -la")
    async with client.chat.completions.stream(
        model="any",
        messages=[{"role": "user", "content": "Look."}],
        tools=[{"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}],
        stream_options={"include_usage": True},
    ) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()
    assert kinds.count("content.delta") > 1
    message = final.choices[0].message
    assert message.content == "Let me look at the files that are here, one by one."
    assert message.tool_calls and message.tool_calls[0].function.arguments == '{"command":"ls -la"}'
    assert final.usage and final.usage.completion_tokens == len(session.forest[0].sampled)


async def test_errors_are_the_client_s_own(stand: Bench, session: Session, client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        await client.chat.completions.create(model="any", messages=[])
    assert bad.value.param == "messages"
    with pytest.raises(openai.AuthenticationError) as unknown:
        await client.with_options(api_key="wrong").chat.completions.create(model="any", messages=[])
    assert unknown.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError):
        await client.embeddings.create(model="any", input="x")
    with pytest.raises(openai.BadRequestError) as long:
        await client.chat.completions.create(model="any", messages=[{"role": "user", "content": "word " * 5000}])
    assert long.value.code == "context_length_exceeded"


@pytest.mark.parametrize("stream", [False, True])
async def test_the_client_retries_what_it_should(
    stand: Bench, session: Session, client: openai.AsyncOpenAI, stream: bool
) -> None:
    stand.engine.faults.extend(["500", "nan"])
    answer = await client.chat.completions.create(
        model="any", messages=[{"role": "user", "content": "hi"}], stream=stream
    )
    if stream:
        assert [chunk async for chunk in answer]
    assert len(stand.engine.served) == 1
    assert sum(len(turn.sampled) for turn in session.forest.turns) == len(stand.engine.served[0].sampled)


async def test_models(client: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["polar-policy"]
    assert (await client.models.retrieve("x")).id == "x"
