# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Google generateContent, judged by `google-genai`."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine
from typing import Any

from google import genai
from google.genai import errors as google
from google.genai import types

from nemo_gym_polar.conformance.case import PIXEL, QUESTION, SCHEMA, TIMEOUT, Case, Subject, check, refused, wrong

Run = Callable[[Subject], str]

WEATHER = types.FunctionDeclaration(name="weather", description="Look.", parameters_json_schema=SCHEMA)
TOOL = types.Tool(function_declarations=[WEATHER])
CALLED: Any = [
    types.Content(role="user", parts=[types.Part(text=QUESTION)]),
    types.Content(role="model", parts=[types.Part.from_function_call(name="weather", args={"city": "Paris"})]),
    types.Content(role="user", parts=[types.Part.from_function_response(name="weather", response={"output": "Rain."})]),
]
FINISHES = {"STOP", "MAX_TOKENS", "MALFORMED_FUNCTION_CALL"}


def client(subject: Subject, key: str) -> genai.Client:
    options = types.HttpOptions(base_url=subject.url, timeout=int(TIMEOUT * 1000))
    return genai.Client(api_key=key, vertexai=False, http_options=options)


def plain(work: Callable[[genai.Client, str], str]) -> Run:
    """A case from what a client does with a model of this name."""

    def run(subject: Subject) -> str:
        with client(subject, subject.key) as one:
            return work(one, subject.model)

    return run


def in_loop(work: Callable[[genai.client.AsyncClient, str], Coroutine[Any, Any, str]]) -> Run:
    """The same with the asynchronous client."""

    async def run(subject: Subject) -> str:
        with client(subject, subject.key) as one:
            async with one.aio as other:
                return await work(other, subject.model)

    return lambda subject: asyncio.run(run(subject))


def limited(tokens: int, **more: Any) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(max_output_tokens=tokens, **more)


def finish(said: types.GenerateContentResponse) -> str:
    check(said.candidates, "no candidates")
    reason = said.candidates[0].finish_reason if said.candidates else None
    return reason.name if reason is not None else ""


def answer(one: genai.Client, model: str) -> str:
    config = limited(32, system_instruction="Be brief.")
    said = one.models.generate_content(model=model, contents=QUESTION, config=config)
    check(finish(said) in FINISHES, f"finishReason is {finish(said)!r}")
    usage = said.usage_metadata
    check(usage and usage.prompt_token_count and usage.total_token_count, f"usageMetadata is {usage}")
    return ""


async def answer_async(one: genai.client.AsyncClient, model: str) -> str:
    said = await one.models.generate_content(model=model, contents=QUESTION, config=limited(8))
    check(finish(said) in FINISHES, f"finishReason is {finish(said)!r}")
    return ""


def stream(one: genai.Client, model: str) -> str:
    chunks = list(one.models.generate_content_stream(model=model, contents=QUESTION, config=limited(32)))
    check(finish(chunks[-1]) in FINISHES, f"the last chunk's finishReason is {finish(chunks[-1])!r}")
    check(chunks[-1].usage_metadata, "the last chunk has no usageMetadata")
    return ""


async def stream_async(one: genai.client.AsyncClient, model: str) -> str:
    chunks = await one.models.generate_content_stream(model=model, contents=QUESTION, config=limited(8))
    last = [chunk async for chunk in chunks][-1]
    check(finish(last) in FINISHES, f"the last chunk's finishReason is {finish(last)!r}")
    return ""


def tools(one: genai.Client, model: str) -> str:
    """A history with a call and its result, neither of which has an id."""
    off = types.AutomaticFunctionCallingConfig(disable=True)
    config = limited(32, tools=[TOOL], automatic_function_calling=off)
    said = one.models.generate_content(model=model, contents=CALLED, config=config)
    check(finish(said) in FINISHES, f"finishReason is {finish(said)!r}")
    return ""


def length(one: genai.Client, model: str) -> str:
    said = one.models.generate_content(model=model, contents=QUESTION, config=limited(1))
    check(finish(said) == "MAX_TOKENS", f"finishReason is {finish(said)!r}")
    return ""


def choices(one: genai.Client, model: str) -> str:
    said = one.models.generate_content(model=model, contents=QUESTION, config=limited(8, candidate_count=2))
    check(said.candidates and len(said.candidates) == 2, f"{len(said.candidates or [])} candidates")
    return ""


def image(one: genai.Client, model: str) -> str:
    picture: Any = types.Part.from_bytes(data=base64.b64decode(PIXEL), mime_type="image/png")
    try:
        one.models.generate_content(model=model, contents=[picture, "What is this?"], config=limited(8))
    except google.ClientError as error:
        check(error.code == 400, f"status {error.code}")
        return f"refused: {error.message}"[:120]
    return ""


def count(one: genai.Client, model: str) -> str:
    """The count of a prompt is the one that a call with it reports."""
    counted = one.models.count_tokens(model=model, contents=QUESTION).total_tokens
    said = one.models.generate_content(model=model, contents=QUESTION, config=limited(1))
    used = said.usage_metadata and said.usage_metadata.prompt_token_count
    check(counted and counted == used, f"counted {counted}, used {used}")
    return ""


def models(one: genai.Client, model: str) -> str:
    names = [model.name for model in one.models.list()]
    if not names or not names[0]:
        wrong("the list is empty")
    check(one.models.get(model=names[0]).name == names[0], "another model than asked for")
    return ""


def errors(one: genai.Client, model: str) -> str:
    def ask_as_robot() -> object:
        robot: Any = types.Content(role="robot", parts=[types.Part(text=QUESTION)])
        return one.models.generate_content(model=model, contents=[robot], config=limited(1))

    return refusal(ask_as_robot, 400, "INVALID_ARGUMENT")


def wrong_key(subject: Subject) -> str:
    with client(subject, "wrong") as one:
        return refusal(
            lambda: one.models.generate_content(model=subject.model, contents=QUESTION), 401, "UNAUTHENTICATED"
        )


def refusal(call: Callable[[], object], code: int, status: str) -> str:
    error = refused(google.ClientError, call)
    said = (getattr(error, "code", None), getattr(error, "status", None))
    check(said == (code, status), f"{said} in place of {(code, status)}")
    return ""


CASES: tuple[Case, ...] = (
    Case("generate_content", "answer", plain(answer)),
    Case("generate_content", "answer, async", in_loop(answer_async)),
    Case("generate_content", "stream", plain(stream)),
    Case("generate_content", "stream, async", in_loop(stream_async)),
    Case("generate_content", "tools", plain(tools)),
    Case("generate_content", "token limit", plain(length)),
    Case("generate_content", "several choices", plain(choices)),
    Case("generate_content", "image", plain(image)),
    Case("generate_content", "token count", plain(count)),
    Case("generate_content", "models", plain(models)),
    Case("generate_content", "errors", plain(errors)),
    Case("generate_content", "wrong key", wrong_key),
)
