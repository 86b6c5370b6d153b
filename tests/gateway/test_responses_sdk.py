# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's official client on the Responses API: answers, streams, tools, stored answers, counts, errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from nemo_gym_polar.dialects import responses
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.gateway import Session
from tests.support.fake_engine import bash
from tests.support.gateways import TOOLS, Bench

FUNCTIONS: list[Any] = [{"type": "function", **TOOLS[0]["function"], "strict": False}]


@pytest.fixture
async def session(stand: Bench) -> Session:
    return await stand.gateway.open()


@pytest.fixture
async def client(stand: Bench, session: Session) -> AsyncIterator[openai.AsyncOpenAI]:
    url = stand.server.url + session.path + "/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key=session.secret, max_retries=0) as client:
        yield client


def one_chain(stand: Bench, session: Session) -> None:
    turns, last = session.forest.turns, stand.engine.served[-1]
    assert [turn.edge for turn in turns] == [Edge.ROOT] + [Edge.CONTINUE] * (len(turns) - 1)
    assert session.forest.tokens(turns[-1].index).tolist() == last.context + last.sampled


async def test_tools_over_several_turns_are_one_chain(
    stand: Bench, session: Session, client: openai.AsyncOpenAI
) -> None:
    answers = iter(["Look:\n" + bash("ls"), bash("touch a") + bash("touch b"), "All done."])
    stand.engine.script = lambda _: next(answers)
    items: list[Any] = [{"role": "user", "content": "Create two files."}]
    while True:
        response = await client.responses.create(model="any", input=items, tools=FUNCTIONS, instructions="Be brief.")
        items += [item.model_dump(exclude_none=True) for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            break
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "ok"} for call in calls]
    assert response.output_text == "All done."
    assert response.usage and response.usage.input_tokens == len(stand.engine.served[-1].context)
    one_chain(stand, session)


async def test_a_session_goes_on_from_a_stored_answer(
    stand: Bench, session: Session, client: openai.AsyncOpenAI
) -> None:
    answers = iter([bash("ls"), "Two files.", "Goodbye."])
    stand.engine.script = lambda _: next(answers)
    first = await client.responses.create(model="any", input="Look.", tools=FUNCTIONS, instructions="Be brief.")
    (call,) = (item for item in first.output if item.type == "function_call")
    output: list[Any] = [{"type": "function_call_output", "call_id": call.call_id, "output": "a b"}]
    again: dict[str, Any] = {"model": "any", "tools": FUNCTIONS, "instructions": "Be brief."}
    second = await client.responses.create(input=output, previous_response_id=first.id, **again)
    third = await client.responses.create(input="Bye.", previous_response_id=second.id, **again)
    assert (second.output_text, third.output_text) == ("Two files.", "Goodbye.")
    assert third.previous_response_id == second.id
    one_chain(stand, session)


async def test_stored_answers_are_shown_and_deleted(client: openai.AsyncOpenAI) -> None:
    made = await client.responses.create(model="any", input="hi")
    assert (await client.responses.retrieve(made.id)).model_dump() == made.model_dump()
    await client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(made.id)
    with pytest.raises(openai.BadRequestError, match="not found"):
        await client.responses.create(model="any", input="hi", previous_response_id=made.id)


async def test_an_answer_that_is_not_stored_is_not_found(client: openai.AsyncOpenAI) -> None:
    made = await client.responses.create(model="any", input="hi", store=False)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(made.id)


@pytest.mark.parametrize("delay", [0.0, 0.8])
async def test_a_stream_accumulates_to_the_same_answer(stand: Bench, client: openai.AsyncOpenAI, delay: float) -> None:
    """The client wants the response object before anything else, even where the engine is slow."""
    stand.engine.delay = delay
    stand.engine.script = lambda _: "Let me look at the files that are here, one by one, slowly.\n" + bash("ls -la")
    async with client.responses.stream(model="any", input="Look.", tools=FUNCTIONS) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds.count("response.output_text.delta") > 1
    assert final.output_text.startswith("Let me look")
    shown = await client.responses.retrieve(final.id)
    assert (shown.output_text, shown.usage) == (final.output_text, final.usage)
    assert [item.id for item in shown.output] == [item.id for item in final.output]


async def test_keep_alives_are_events_that_the_client_passes_on(stand: Bench, client: openai.AsyncOpenAI) -> None:
    stand.engine.delay = 0.8
    stream = await client.responses.create(model="any", input="hi", stream=True)
    kinds: list[str] = [event.type async for event in stream]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[2:4] == ["keepalive"] * 2
    assert kinds[-1] == "response.completed"
    assert responses.KEEP_ALIVE.startswith(b"event: keepalive\ndata: {")


async def test_input_tokens_are_counted_without_a_generation(
    stand: Bench, session: Session, client: openai.AsyncOpenAI
) -> None:
    asked: dict[str, Any] = {"model": "any", "input": "How long is this?", "tools": FUNCTIONS}
    counted = await client.responses.input_tokens.count(**asked)
    assert stand.engine.served == []
    made = await client.responses.create(**asked)
    assert made.usage and counted.input_tokens == made.usage.input_tokens
    after = await client.responses.input_tokens.count(
        model="any", input="Go on.", tools=FUNCTIONS, previous_response_id=made.id
    )
    assert after.input_tokens > counted.input_tokens
    assert len(session.forest.turns) == 1


async def test_errors_are_the_providers(stand: Bench, client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.responses.create(model="any", input="hi", background=True)
    assert refused.value.param == "background"
    with pytest.raises(openai.BadRequestError) as long:
        await client.responses.create(model="any", input="word " * 5000)
    assert long.value.code == "context_length_exceeded"
    stand.engine.faults.append("429")
    with pytest.raises(openai.RateLimitError):
        await client.responses.create(model="any", input="hi")
    assert (await client.responses.create(model="any", input="hi")).output_text == "Done."


async def test_an_answer_that_is_cut_is_incomplete(client: openai.AsyncOpenAI) -> None:
    made = await client.responses.create(model="any", input="hi", max_output_tokens=1)
    assert made.status == "incomplete"
    assert made.incomplete_details and made.incomplete_details.reason == "max_output_tokens"
