# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Requests as harnesses send them, with anything in them replaced or left out.

The answer is whole, or a refusal with a 4xx status in the shape of the dialect: never a 500, a stream without an end or
a turn without an answer.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.fake_engine import bash
from tests.support.gateways import TOOLS, Bench, Reply

SCHEMA: dict[str, Any] = TOOLS[0]["function"]["parameters"]
DATA = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True)
class Wire:
    """Where a dialect is asked, one request with most of its fields, and the field that asks for a stream."""

    path: str
    body: dict[str, Any]
    stream_path: str | None = None


CHAT = Wire(
    "/v1/chat/completions",
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "Go."}]},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
                    {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "x"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "b"}]},
        ],
        "tools": [*TOOLS, {"type": "custom", "custom": {"name": "patch", "format": {"type": "text"}}}],
        "tool_choice": {"type": "function", "function": {"name": "bash"}},
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        "stop": ["###"],
        "n": 2,
        "max_tokens": 40,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 1,
    },
)
RESPONSES = Wire(
    "/v1/responses",
    {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Rules."}]},
            {"role": "user", "content": "Go."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "x"},
            {"type": "function_call", "call_id": "c3", "namespace": "agents", "name": "spawn", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a"}]},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "b"},
            {"type": "function_call_output", "call_id": "c3", "output": "c"},
        ],
        "tools": [
            {"type": "function", "name": "bash", "description": "Run.", "parameters": SCHEMA, "strict": False},
            {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "a: b"}},
            {
                "type": "namespace",
                "name": "agents",
                "description": "Agents.",
                "tools": [{"type": "function", "name": "spawn", "parameters": SCHEMA}],
            },
            {"type": "web_search"},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}, "verbosity": "low"},
        "store": False,
        "stream": True,
        "max_output_tokens": 40,
        "metadata": {"a": "b"},
    },
)
MESSAGES = Wire(
    "/v1/messages",
    {
        "model": "m",
        "max_tokens": 40,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Go."}]},
            {"role": "system", "content": "Later rules."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": ""},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}},
                    {"type": "tool_use", "id": "t2", "name": "bash", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}]},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "b", "is_error": True},
                    {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
        "tools": [
            {"name": "bash", "description": "Run.", "input_schema": SCHEMA},
            {"name": "late", "description": "Later.", "input_schema": SCHEMA, "defer_loading": True},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
        ],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "metadata": {"user_id": "u"},
        "stop_sequences": ["###"],
        "stream": True,
    },
)
GENERATE_CONTENT = Wire(
    "/v1beta/models/m:generateContent",
    {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {"text": "I look."},
                    {"functionCall": {"id": "f1", "name": "bash", "args": {"command": "ls"}}, "thoughtSignature": "eA"},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "f1", "name": "bash", "response": {"output": "a"}}}],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "bash", "description": "Run.", "parametersJsonSchema": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {
            "temperature": 1,
            "topP": 0.95,
            "topK": 64,
            "candidateCount": 2,
            "maxOutputTokens": 40,
            "stopSequences": ["###"],
            "responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
            "thinkingConfig": {"includeThoughts": True},
        },
    },
    stream_path="/v1beta/models/m:streamGenerateContent?alt=sse",
)
WIRES = [CHAT, RESPONSES, MESSAGES, GENERATE_CONTENT]
ENDS = {"chat": "[DONE]", "responses": '"response.', "messages": "message_stop", "generate_content": "finishReason"}
KEYS = {"chat": "choices", "responses": "output", "messages": "content", "generate_content": "candidates"}
NAMES = ["chat", "responses", "messages", "generate_content"]

text = st.text(max_size=20)
odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(allow_nan=False, allow_infinity=False),
    text,
    st.sampled_from(["system", "user", "tool", "image", "data:image/png;base64," + DATA, "inf", ""]),
    st.lists(st.none() | text | st.just({}), max_size=2),
    st.dictionaries(st.sampled_from(["type", "text", "name", "id", "role", "content", "parts"]), text, max_size=2),
)
LEFT_OUT = "left out"
changes = st.lists(st.tuples(st.integers(0, 10_000), odd | st.just(LEFT_OUT)), min_size=1, max_size=3)
lives = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) below `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from places(inner)


def mutated(body: dict[str, Any], how: list[tuple[int, Any]]) -> dict[str, Any]:
    body = copy.deepcopy(body)
    for number, value in how:
        found = list(places(body))
        if not found:
            break
        container, key = found[number % len(found)]
        if value == LEFT_OUT:
            del container[key]
        else:
            container[key] = value
    return body


def serialisable(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()  # orjson has no integers beyond 64 bits


def assert_whole(name: str, reply: Reply) -> None:
    if reply.headers["Content-Type"].startswith("text/event-stream"):
        events = [block for block in reply.body.decode().split("\n\n") if "data: " in block]
        last = events[-1].partition("data: ")[2]
        assert ENDS[name] in last
        return
    assert KEYS[name] in reply.json


def assert_refused(name: str, reply: Reply) -> None:
    assert 400 <= reply.status < 500, reply
    error = reply.error
    assert isinstance(error["message"], str) and error["message"]
    if name == "generate_content":
        assert error["code"] == reply.status and error["status"]
    else:
        assert error["type"]
    assert name != "messages" or reply.json["type"] == "error"


@pytest.mark.parametrize(("name", "wire"), list(zip(NAMES, WIRES, strict=True)), ids=NAMES)
@given(changes, st.booleans())
@example([], False)
@example([], True)
@settings(max_examples=120, suppress_health_check=lives)
async def test_any_change_gets_a_whole_answer_or_a_refusal(
    stand: Bench, name: str, wire: Wire, how: list[tuple[int, Any]], stream: bool
) -> None:
    stand.engine.script = lambda _: "Hm.\n" + bash("ls")
    before = len(stand.engine.served)
    body = mutated({**wire.body, "stream": True} if stream and wire.stream_path is None else wire.body, how)
    if not stream and wire.stream_path is None:
        body.pop("stream", None)
    session = await stand.gateway.open()
    path = wire.stream_path if stream and wire.stream_path else wire.path
    reply = await stand.post(session, serialisable(body), path=path)
    served = len(stand.engine.served) - before
    if reply.status == 200:
        assert_whole(name, reply)
        assert len(session.forest) == served
        assert all(turn.has_tokens for turn in session.forest.turns)
    else:
        assert how, reply.body
        assert_refused(name, reply)
        assert served == 0
    await stand.gateway.finish(session.id)
