# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Chat Completions, judged by `openai`."""

from __future__ import annotations

from typing import Any

import openai

from nemo_gym_polar.conformance.case import PIXEL, QUESTION, SCHEMA, Case, check, refused
from nemo_gym_polar.conformance.openai_client import in_loop, plain

TOOL: Any = {"type": "function", "function": {"name": "weather", "description": "Look.", "parameters": SCHEMA}}
ASKED: Any = [{"role": "user", "content": QUESTION}]
CALLED: Any = [
    *ASKED,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "Rain."},
    {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "Sun."}]},
]
FINISHES = {"stop", "length", "tool_calls"}


def answer(one: openai.OpenAI, model: str) -> str:
    said = one.chat.completions.create(model=model, messages=ASKED, max_tokens=32)
    check(said.id.startswith("chatcmpl-"), f"id {said.id!r} has no prefix chatcmpl-")
    check(said.object == "chat.completion", f"object is {said.object!r}")
    check(said.choices[0].finish_reason in FINISHES, f"finish_reason is {said.choices[0].finish_reason!r}")
    usage = said.usage
    adds_up = usage and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    check(adds_up, f"usage does not add up: {usage}")
    return ""


async def answer_async(one: openai.AsyncOpenAI, model: str) -> str:
    said = await one.chat.completions.create(model=model, messages=ASKED, max_tokens=8)
    check(said.choices, "no choices")
    return ""


def stream(one: openai.OpenAI, model: str) -> str:
    options: Any = {"include_usage": True}
    with one.chat.completions.stream(model=model, messages=ASKED, max_tokens=32, stream_options=options) as events:
        final = events.get_final_completion()
    check(final.choices[0].finish_reason in FINISHES, f"finish_reason is {final.choices[0].finish_reason!r}")
    check(final.usage and final.usage.completion_tokens > 0, f"usage is {final.usage}")
    return ""


async def stream_async(one: openai.AsyncOpenAI, model: str) -> str:
    chunks = await one.chat.completions.create(model=model, messages=ASKED, max_tokens=8, stream=True)
    reasons = [choice.finish_reason async for chunk in chunks for choice in chunk.choices]
    check(reasons and reasons[-1] in FINISHES, f"the last chunk's finish_reason is {reasons[-1:]}")
    return ""


def tools(one: openai.OpenAI, model: str) -> str:
    """A history with parallel calls and their results, as text and as a list."""
    said = one.chat.completions.create(model=model, messages=CALLED, tools=[TOOL], max_tokens=32)
    for call in said.choices[0].message.tool_calls or []:
        check(call.id and call.type == "function", f"a call without id or type: {call}")
    return ""


def length(one: openai.OpenAI, model: str) -> str:
    said = one.chat.completions.create(model=model, messages=ASKED, max_tokens=1)
    check(said.choices[0].finish_reason == "length", f"finish_reason is {said.choices[0].finish_reason!r}")
    check(said.usage and said.usage.completion_tokens == 1, f"usage is {said.usage}")
    return ""


def choices(one: openai.OpenAI, model: str) -> str:
    said = one.chat.completions.create(model=model, messages=ASKED, max_tokens=8, n=2)
    check([choice.index for choice in said.choices] == [0, 1], f"indices {[choice.index for choice in said.choices]}")
    return ""


def image(one: openai.OpenAI, model: str) -> str:
    url = {"url": f"data:image/png;base64,{PIXEL}"}
    content: Any = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": url}]
    try:
        one.chat.completions.create(model=model, messages=[{"role": "user", "content": content}], max_tokens=8)
    except openai.BadRequestError as error:
        return f"refused: {error.message}"[:120]
    return ""


def unknown_fields(one: openai.OpenAI, model: str) -> str:
    extra = {"never_heard_of": {"a": [1]}, "service_tier": "flex", "verbosity": "low"}
    one.chat.completions.create(model=model, messages=ASKED, max_tokens=1, extra_body=extra)
    return ""


def retried(one: openai.OpenAI, model: str) -> str:
    """A client that lost an answer asks again with the same body."""
    for _ in range(2):
        one.chat.completions.create(model=model, messages=ASKED, max_tokens=1)
    return ""


def models(one: openai.OpenAI, model: str) -> str:
    names = [model.id for model in one.models.list()]
    check(names, "the list is empty")
    check(one.models.retrieve(names[0]).id == names[0], "another model than asked for")
    return ""


def errors(one: openai.OpenAI, model: str) -> str:
    def ask(client: openai.OpenAI, **fields: Any) -> Any:
        return client.chat.completions.create(**{"model": model, "messages": ASKED, "max_tokens": 1, **fields})

    refused(openai.AuthenticationError, lambda: ask(one.with_options(api_key="wrong", max_retries=0)))
    bad = refused(openai.BadRequestError, lambda: ask(one, messages="Hi"))
    check(getattr(bad, "param", None) == "messages", f"param is {getattr(bad, 'param', None)!r}")
    refused(openai.NotFoundError, lambda: one.post("/chat/nowhere", body={}, cast_to=object))
    return ""


CASES: tuple[Case, ...] = (
    Case("chat", "answer", plain(answer)),
    Case("chat", "answer, async", in_loop(answer_async)),
    Case("chat", "stream", plain(stream)),
    Case("chat", "stream, async", in_loop(stream_async)),
    Case("chat", "tools", plain(tools)),
    Case("chat", "token limit", plain(length)),
    Case("chat", "several choices", plain(choices)),
    Case("chat", "image", plain(image)),
    Case("chat", "unknown fields", plain(unknown_fields)),
    Case("chat", "retry", plain(retried)),
    Case("chat", "models", plain(models)),
    Case("chat", "errors", plain(errors)),
)
