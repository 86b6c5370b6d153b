# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Responses, judged by `openai`."""

from __future__ import annotations

from typing import Any

import openai

from nemo_gym_polar.conformance.case import PIXEL, QUESTION, SCHEMA, Case, check, refused
from nemo_gym_polar.conformance.openai_client import in_loop, plain

TOOL: Any = {"type": "function", "name": "weather", "description": "Look.", "parameters": SCHEMA, "strict": False}
PATCH: Any = {"type": "custom", "name": "patch", "description": "Edit.", "format": {"type": "text"}}
CALLED: Any = [
    {"role": "user", "content": QUESTION},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Paris"}'},
    {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "*** Begin"},
    {"type": "function_call_output", "call_id": "call_1", "output": "Rain."},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "Done."}]},
]
STATES = {"completed", "incomplete"}


def answer(one: openai.OpenAI, model: str) -> str:
    said = one.responses.create(model=model, input=QUESTION, max_output_tokens=32)
    check(said.id.startswith("resp_"), f"id {said.id!r} has no prefix resp_")
    check(said.status in STATES, f"status is {said.status!r}")
    usage = said.usage
    check(usage and usage.total_tokens == usage.input_tokens + usage.output_tokens, f"usage does not add up: {usage}")
    return ""


async def answer_async(one: openai.AsyncOpenAI, model: str) -> str:
    said = await one.responses.create(model=model, input=QUESTION, max_output_tokens=16)
    check(said.status in STATES, f"status is {said.status!r}")
    return ""


def stream(one: openai.OpenAI, model: str) -> str:
    with one.responses.stream(model=model, input=QUESTION, max_output_tokens=32) as events:
        kinds = [event.type for event in events]
    check(kinds[0] == "response.created", f"the first event is {kinds[0]}")
    check(kinds[-1] in ("response.completed", "response.incomplete"), f"the last event is {kinds[-1]}")
    return ""


async def stream_async(one: openai.AsyncOpenAI, model: str) -> str:
    events = await one.responses.create(model=model, input=QUESTION, max_output_tokens=16, stream=True)
    numbers = [getattr(event, "sequence_number", None) async for event in events]
    check(numbers, "no events")
    check(numbers == sorted(numbers, key=lambda number: number or 0), f"sequence numbers out of order: {numbers}")
    return ""


def tools(one: openai.OpenAI, model: str) -> str:
    """A history with a function's and a custom tool's call and result."""
    said = one.responses.create(model=model, input=CALLED, tools=[TOOL, PATCH], max_output_tokens=32)
    check(said.output is not None, "no output")
    return ""


def length(one: openai.OpenAI, model: str) -> str:
    said = one.responses.create(model=model, input=QUESTION, max_output_tokens=1)
    check(said.status == "incomplete", f"status is {said.status!r}")
    reason = said.incomplete_details and said.incomplete_details.reason
    check(reason == "max_output_tokens", f"incomplete_details.reason is {reason!r}")
    return ""


def conversation(one: openai.OpenAI, model: str) -> str:
    """An answer that is kept can be gone on from, shown and deleted."""
    first = one.responses.create(model=model, input=QUESTION, max_output_tokens=16, store=True)
    second = one.responses.create(model=model, input="And Rome?", max_output_tokens=16, previous_response_id=first.id)
    check(second.previous_response_id == first.id, f"previous_response_id is {second.previous_response_id!r}")
    grown = first.usage and second.usage and second.usage.input_tokens > first.usage.input_tokens
    check(grown, "the second prompt is not longer than the first: the history was left out")
    check(one.responses.retrieve(first.id).id == first.id, "another response than asked for")
    one.responses.delete(first.id)
    refused(openai.NotFoundError, lambda: one.responses.retrieve(first.id))
    return ""


def image(one: openai.OpenAI, model: str) -> str:
    content: Any = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
    ]
    try:
        one.responses.create(model=model, input=[{"role": "user", "content": content}], max_output_tokens=8)
    except openai.BadRequestError as error:
        return f"refused: {error.message}"[:120]
    return ""


def count(one: openai.OpenAI, model: str) -> str:
    """The count of a prompt is the one that a call with it reports."""
    counted = one.post("/responses/input_tokens", body={"model": model, "input": QUESTION}, cast_to=object)
    used = one.responses.create(model=model, input=QUESTION, max_output_tokens=1).usage
    tokens = counted.get("input_tokens") if isinstance(counted, dict) else None
    check(used and tokens == used.input_tokens, f"counted {tokens}, used {used and used.input_tokens}")
    return ""


def errors(one: openai.OpenAI, model: str) -> str:
    def ask(client: openai.OpenAI, **fields: Any) -> Any:
        return client.responses.create(**{"model": model, "input": QUESTION, "max_output_tokens": 1, **fields})

    refused(openai.AuthenticationError, lambda: ask(one.with_options(api_key="wrong", max_retries=0)))
    bad = refused(openai.BadRequestError, lambda: ask(one, input=7))
    check(getattr(bad, "param", None) == "input", f"param is {getattr(bad, 'param', None)!r}")
    refused(openai.BadRequestError, lambda: ask(one, previous_response_id="resp_none"))
    return ""


CASES: tuple[Case, ...] = (
    Case("responses", "answer", plain(answer)),
    Case("responses", "answer, async", in_loop(answer_async)),
    Case("responses", "stream", plain(stream)),
    Case("responses", "stream, async", in_loop(stream_async)),
    Case("responses", "tools", plain(tools)),
    Case("responses", "token limit", plain(length)),
    Case("responses", "conversation", plain(conversation)),
    Case("responses", "image", plain(image)),
    Case("responses", "token count", plain(count)),
    Case("responses", "errors", plain(errors)),
)
