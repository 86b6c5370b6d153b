# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Anthropic Messages, judged by `anthropic`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anthropic

from nemo_gym_polar.conformance.case import PIXEL, QUESTION, SCHEMA, TIMEOUT, Case, Subject, check, refused

Run = Callable[[Subject], str]

TOOL: Any = {"name": "weather", "description": "Look.", "input_schema": SCHEMA}
ASKED: Any = [{"role": "user", "content": QUESTION}]
CALLED: Any = [
    *ASKED,
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
            {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "Rome"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Rain."},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "is_error": True,
                "content": [{"type": "text", "text": "Unknown."}],
                "cache_control": {"type": "ephemeral"},
            },
        ],
    },
]
STOPS = {"end_turn", "max_tokens", "tool_use", "stop_sequence"}


def plain(work: Callable[[anthropic.Anthropic, str], str]) -> Run:
    """A case from what a client does with a model of this name."""

    def run(subject: Subject) -> str:
        with anthropic.Anthropic(base_url=subject.url, api_key=subject.key, timeout=TIMEOUT) as one:
            return work(one, subject.model)

    return run


def in_loop(work: Callable[[anthropic.AsyncAnthropic, str], Coroutine[Any, Any, str]]) -> Run:
    """The same with the asynchronous client."""

    async def run(subject: Subject) -> str:
        async with anthropic.AsyncAnthropic(base_url=subject.url, api_key=subject.key, timeout=TIMEOUT) as one:
            return await work(one, subject.model)

    return lambda subject: asyncio.run(run(subject))


def answer(one: anthropic.Anthropic, model: str) -> str:
    said = one.messages.create(model=model, messages=ASKED, max_tokens=32, system="Be brief.")
    check(said.id.startswith("msg_"), f"id {said.id!r} has no prefix msg_")
    check((said.type, said.role) == ("message", "assistant"), f"type {said.type!r}, role {said.role!r}")
    check(said.stop_reason in STOPS, f"stop_reason is {said.stop_reason!r}")
    check(said.usage.output_tokens > 0, f"usage is {said.usage}")
    return ""


async def answer_async(one: anthropic.AsyncAnthropic, model: str) -> str:
    said = await one.messages.create(model=model, messages=ASKED, max_tokens=8)
    check(said.stop_reason in STOPS, f"stop_reason is {said.stop_reason!r}")
    return ""


def stream(one: anthropic.Anthropic, model: str) -> str:
    with one.messages.stream(model=model, messages=ASKED, max_tokens=32) as events:
        final = events.get_final_message()
    check(final.stop_reason in STOPS, f"stop_reason is {final.stop_reason!r}")
    check(final.usage.output_tokens > 0, f"usage is {final.usage}")
    return ""


async def stream_async(one: anthropic.AsyncAnthropic, model: str) -> str:
    events = await one.messages.create(model=model, messages=ASKED, max_tokens=8, stream=True)
    kinds = [event.type async for event in events]
    check((kinds[0], kinds[-1]) == ("message_start", "message_stop"), f"from {kinds[0]} to {kinds[-1]}")
    return ""


def tools(one: anthropic.Anthropic, model: str) -> str:
    """A history with parallel calls, their results, an error and a cache marker."""
    said = one.messages.create(model=model, messages=CALLED, tools=[TOOL], max_tokens=32)
    for block in said.content:
        check(block.type in ("text", "thinking", "tool_use"), f"a block of type {block.type!r}")
    return ""


def length(one: anthropic.Anthropic, model: str) -> str:
    said = one.messages.create(model=model, messages=ASKED, max_tokens=1)
    check(said.stop_reason == "max_tokens", f"stop_reason is {said.stop_reason!r}")
    check(said.usage.output_tokens == 1, f"usage is {said.usage}")
    return ""


def image(one: anthropic.Anthropic, model: str) -> str:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    content: Any = [{"type": "text", "text": "What is this?"}, {"type": "image", "source": source}]
    try:
        one.messages.create(model=model, messages=[{"role": "user", "content": content}], max_tokens=8)
    except anthropic.BadRequestError as error:
        return f"refused: {error.message}"[:120]
    return ""


def thinking(one: anthropic.Anthropic, model: str) -> str:
    """Thinking is accepted in both its forms, and a thought goes in and out again."""
    for asked in ({"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}):
        said = one.messages.create(model=model, messages=ASKED, max_tokens=2048, extra_body={"thinking": asked})
        echoed: Any = [*ASKED, {"role": "assistant", "content": said.content}, {"role": "user", "content": "And?"}]
        if said.content:
            one.messages.create(model=model, messages=echoed, max_tokens=1)
    return ""


def count(one: anthropic.Anthropic, model: str) -> str:
    """The count of a prompt is the one that a call with it reports."""
    counted = one.messages.count_tokens(model=model, messages=ASKED).input_tokens
    usage = one.messages.create(model=model, messages=ASKED, max_tokens=1).usage
    used = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    check(counted and counted == used, f"counted {counted}, used {used}")
    return ""


def models(one: anthropic.Anthropic, model: str) -> str:
    names = [model.id for model in one.models.list()]
    check(names, "the list is empty")
    check(one.models.retrieve(names[0]).id == names[0], "another model than asked for")
    return ""


def errors(one: anthropic.Anthropic, model: str) -> str:
    def ask(client: anthropic.Anthropic, **fields: Any) -> Any:
        return client.messages.create(**{"model": model, "messages": ASKED, "max_tokens": 1, **fields})

    refused(anthropic.AuthenticationError, lambda: ask(one.with_options(api_key="wrong", max_retries=0)))
    bad = refused(anthropic.BadRequestError, lambda: ask(one, messages="Hi"))
    body = getattr(bad, "body", None)
    shape = isinstance(body, dict) and body.get("type") == "error" and body.get("error", {}).get("type")
    check(shape == "invalid_request_error", f"the body is {body}")
    refused(anthropic.NotFoundError, lambda: one.post("/v1/messages/nowhere", body={}, cast_to=object))
    return ""


CASES: tuple[Case, ...] = (
    Case("messages", "answer", plain(answer)),
    Case("messages", "answer, async", in_loop(answer_async)),
    Case("messages", "stream", plain(stream)),
    Case("messages", "stream, async", in_loop(stream_async)),
    Case("messages", "tools", plain(tools)),
    Case("messages", "token limit", plain(length)),
    Case("messages", "image", plain(image)),
    Case("messages", "thinking", plain(thinking)),
    Case("messages", "token count", plain(count)),
    Case("messages", "models", plain(models)),
    Case("messages", "errors", plain(errors)),
)
