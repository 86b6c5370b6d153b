# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The wire forms that several endpoints share."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.service import PolicyService
from nemo_gym_polar.policy.detokenizer import Vocabulary
from nemo_gym_polar.policy.engine import Engine, EngineStoppedError
from nemo_gym_polar.policy.sampling import Choice
from nemo_gym_polar.policy.sequence import SampledSequence

JSONObject = dict[str, Any]


def new_id(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex}"


def json_response(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")


def usage_of(sequences: Sequence[SampledSequence], prompt_tokens: int) -> JSONObject:
    sampled = sum(len(sequence.choices) for sequence in sequences)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": sampled,
        "total_tokens": prompt_tokens + sampled,
        "prompt_tokens_details": None,
    }


def prompt_logprobs_of(sequence: SampledSequence, vocabulary: Vocabulary) -> list[JSONObject | None] | None:
    """vLLM's form: per prompt token an object by token id; nothing precedes the first token, so it has none."""
    if sequence.params.prompt_logprobs is None:
        return None
    return [None, *[_ranked(choice, vocabulary) for choice in sequence.prompt_choices]]


def _ranked(choice: Choice, vocabulary: Vocabulary) -> JSONObject:
    likeliest = {token: (logprob, rank) for rank, (token, logprob) in enumerate(choice.top, 1)}
    all_of_them = {choice.token: (choice.logprob, choice.rank)} | likeliest
    return {
        str(token): {"logprob": logprob, "rank": rank, "decoded_token": vocabulary.text_of(token)}
        for token, (logprob, rank) in all_of_them.items()
    }


async def finish_all(service: PolicyService, request: Request, sequences: Sequence[SampledSequence]) -> None:
    """Run the sequences to their end; if the client goes away first, stop them and raise `ClientDisconnect`."""
    answers = asyncio.gather(*[service.engine.finish(sequence) for sequence in sequences])
    await unless_disconnected(request, answers)
    for sequence in sequences:
        raise_failure(sequence)


def raise_failure(sequence: SampledSequence) -> None:
    if sequence.finish_reason == "error":
        raise ApiError(f"The answer failed: {sequence.error}.", status=500)


async def unless_disconnected(request: Request, work: asyncio.Future[Any]) -> None:
    """Await `work`, or cancel it when the client hangs up. The request's body must have been read."""
    hang_up = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({work, hang_up}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        work.result()
    finally:
        hang_up.cancel()
        work.cancel()
        await asyncio.wait({work, hang_up})


@dataclass(frozen=True, slots=True)
class Growth:
    """What answer `index` gained: tokens from `start` on, and text from character `offset` on."""

    index: int
    start: int
    choices: list[Choice]
    offset: int
    text: str
    finish_reason: str | None


async def watch_growth(engine: Engine, sequences: Sequence[SampledSequence]) -> AsyncGenerator[Growth]:
    """Run the sequences together; yield every growth once. The last one of each sequence has the finish reason."""
    tokens, characters, ended = [0] * len(sequences), [0] * len(sequences), [False] * len(sequences)
    async with aclosing(_watch_all(engine, sequences)) as moves:
        async for index in moves:
            view, first, known = sequences[index].view, tokens[index], characters[index]
            raise_failure(sequences[index])
            if not ended[index] and (view.tokens > first or view.finish_reason):
                choices = sequences[index].choices[first : view.tokens]
                yield Growth(index, first, choices, known, view.text[known:], view.finish_reason)
                tokens[index], characters[index] = view.tokens, max(known, len(view.text))
                ended[index] = view.finish_reason is not None


async def _watch_all(engine: Engine, sequences: Sequence[SampledSequence]) -> AsyncGenerator[int]:
    """Yield the index of each sequence whenever it has moved, at least once after it has ended."""
    moved: asyncio.Queue[int | None] = asyncio.Queue()

    async def follow(index: int) -> None:
        try:
            async with aclosing(engine.watch(sequences[index])) as moves:
                async for _ in moves:
                    moved.put_nowait(index)
            moved.put_nowait(index)
        finally:
            moved.put_nowait(None)

    tasks = [asyncio.create_task(follow(index)) for index in range(len(sequences))]
    try:
        ended = 0
        while ended < len(tasks):
            index = await moved.get()
            if index is None:
                ended += 1
            else:
                yield index
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def event_stream(events: AsyncIterator[JSONObject]) -> StreamingResponse:
    """Server-sent events, closed by [DONE]; a failure after the headers becomes an error event, as vLLM does it."""

    async def lines() -> AsyncIterator[bytes]:
        try:
            async for event in events:
                yield b"data: " + orjson.dumps(event) + b"\n\n"
        except (ApiError, EngineStoppedError) as error:
            failure = error if isinstance(error, ApiError) else ApiError(str(error), status=503)
            yield b"data: " + orjson.dumps(failure.body()) + b"\n\n"
        yield b"data: [DONE]\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
