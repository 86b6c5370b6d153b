# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Google's own client, unmodified: whole answers, streams, tools over several turns, counts, errors, models."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.gateway import Session
from tests.support.fake_engine import bash
from tests.support.gateways import Bench

BASH = {"name": "bash", "parameters": {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}}}
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
CONFIG: Any = {
    "tools": [{"function_declarations": [BASH]}],
    "automatic_function_calling": {"disable": True},
    "system_instruction": "Be brief.",
}


@pytest.fixture
async def session(stand: Bench) -> Session:
    return await stand.gateway.open()


@contextlib.asynccontextmanager
async def connected(stand: Bench, session: Session, **options: Any) -> AsyncIterator[genai.Client]:
    key = options.pop("key", session.secret)
    client = genai.Client(
        api_key=key, http_options=types.HttpOptions(base_url=stand.server.url + session.path, **options)
    )
    try:
        yield client
    finally:
        await client.aio.aclose()
        client.close()


@pytest.fixture
async def client(stand: Bench, session: Session) -> AsyncIterator[genai.Client]:
    async with connected(stand, session) as client:
        yield client


def answer(call: types.FunctionCall) -> types.Part:
    response = types.FunctionResponse(id=call.id, name=call.name, response={"output": "ok"})
    return types.Part(function_response=response)


@pytest.mark.parametrize("keep_ids", [True, False])
async def test_tools_over_several_turns_are_one_chain(
    stand: Bench, session: Session, client: genai.Client, keep_ids: bool
) -> None:
    answers = iter([bash("ls"), bash("touch a") + bash("touch b"), "All done."])
    stand.engine.script = lambda _: next(answers)
    contents: list[Any] = [types.UserContent("Create two files.")]
    while True:
        reply = await client.aio.models.generate_content(model="any", contents=contents, config=CONFIG)
        assert reply.candidates and reply.candidates[0].content
        contents.append(reply.candidates[0].content)
        if not reply.function_calls:
            break
        for call in reply.function_calls:
            call.id = call.id if keep_ids else None
        contents.append(types.UserContent([answer(call) for call in reply.function_calls]))
    assert reply.text == "All done."
    assert [turn.edge for turn in session.forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
    assert session.forest.tokens(2).tolist() == stand.engine.served[2].context + stand.engine.served[2].sampled


async def test_a_stream_accumulates_to_the_same_message(stand: Bench, session: Session, client: genai.Client) -> None:
    stand.engine.script = lambda _: "Let me look at the files that are here, one by one.\n" + bash("ls -la")
    stand.engine.delay = 0.8  # so that the stream is kept alive meanwhile
    chunks = [
        chunk async for chunk in await client.aio.models.generate_content_stream(
            model="any", contents="Look.", config=CONFIG
        )
    ]  # fmt: skip
    assert len(chunks) > 2
    text = "".join(part.text or "" for chunk in chunks for part in chunk.parts or ())
    assert text == "Let me look at the files that are here, one by one."
    (call,) = [call for chunk in chunks for call in chunk.function_calls or ()]
    assert call.args == {"command": "ls -la"}
    used = chunks[-1].usage_metadata
    assert used and used.candidates_token_count == len(session.forest[0].sampled)


async def test_the_synchronous_client(stand: Bench, client: genai.Client) -> None:
    stand.engine.delay = 0.5

    def talk() -> tuple[list[str], str | None]:
        chat = client.chats.create(model="any")
        first = [chunk.text or "" for chunk in chat.send_message_stream("Hi")]
        return first, chat.send_message("Again").text

    first, second = await asyncio.to_thread(talk)
    assert ("".join(first), second) == ("Done.", "Done.")


async def test_a_stream_as_an_array(stand: Bench, session: Session) -> None:
    stand.engine.delay = 0.5
    body = {"contents": [{"parts": [{"text": "Hi"}]}]}
    reply = await stand.post(session, body, path="/v1beta/models/m:streamGenerateContent")
    assert reply.headers["Content-Type"] == "application/json"
    assert [chunk["candidates"][0]["content"]["parts"] for chunk in reply.json] == [[{"text": "Done."}]]


async def test_several_candidates(stand: Bench, session: Session, client: genai.Client) -> None:
    config = types.GenerateContentConfig(candidate_count=2)
    reply = await client.aio.models.generate_content(model="any", contents="Hi", config=config)
    assert [candidate.index for candidate in reply.candidates or ()] == [0, 1]
    assert len(session.forest.turns) == 2


async def test_counting_is_exact_and_no_generation(stand: Bench, session: Session, client: genai.Client) -> None:
    counted = await client.aio.models.count_tokens(model="any", contents="How long is this?")
    assert session.forest.turns == [] and stand.engine.served == []
    reply = await client.aio.models.generate_content(model="any", contents="How long is this?")
    assert reply.usage_metadata and counted.total_tokens == reply.usage_metadata.prompt_token_count


async def test_errors_are_the_client_s_own(stand: Bench, session: Session, client: genai.Client) -> None:
    with pytest.raises(errors.ClientError) as bad:
        await client.aio.models.generate_content(model="any", contents=[types.Content(role="robot")])
    assert (bad.value.code, bad.value.status) == (400, "INVALID_ARGUMENT")
    with pytest.raises(errors.ClientError) as long:
        await client.aio.models.generate_content(model="any", contents="word " * 5000)
    assert "exceeds the maximum number of tokens allowed (4096)." in str(long.value)
    async with connected(stand, session, key="wrong") as stranger:
        with pytest.raises(errors.ClientError) as unknown:
            await stranger.aio.models.generate_content(model="any", contents="Hi")
    assert (unknown.value.code, unknown.value.status) == (401, "UNAUTHENTICATED")
    with pytest.raises(errors.ClientError) as missing:
        await client.aio.models.embed_content(model="any", contents="Hi")
    assert (missing.value.code, missing.value.status) == (404, "NOT_FOUND")


@pytest.mark.parametrize("stream", [False, True])
async def test_overload_says_when_to_come_back(stand: Bench, client: genai.Client, stream: bool) -> None:
    stand.engine.faults.append("429")
    with pytest.raises(errors.ClientError) as busy:
        if stream:
            stream_of = await client.aio.models.generate_content_stream(model="any", contents="Hi")
            await anext(stream_of)
        else:
            await client.aio.models.generate_content(model="any", contents="Hi")
    assert (busy.value.code, busy.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert busy.value.details["error"]["details"][0]["retryDelay"] == "7s"


@pytest.mark.parametrize("fault", ["500", "nan"])
async def test_the_client_retries_what_it_is_told_to(stand: Bench, session: Session, fault: Any) -> None:
    stand.engine.faults.append(fault)
    retry = types.HttpRetryOptions(attempts=2, initial_delay=0.01)
    async with connected(stand, session, retry_options=retry) as client:
        reply = await client.aio.models.generate_content(model="any", contents="Hi")
    assert reply.text == "Done."
    assert sum(len(turn.sampled) for turn in session.forest.turns) == len(stand.engine.served[0].sampled)


async def test_models(client: genai.Client) -> None:
    listed = await client.aio.models.list()
    assert [model.name async for model in listed] == ["models/polar-policy"]
    assert (await client.aio.models.get(model="x")).name == "models/x"
