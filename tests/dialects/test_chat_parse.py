# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What Chat Completions bodies of real clients mean, and which are refused with which words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import (
    Image,
    Message,
    Opaque,
    Reasoning,
    Request,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from nemo_gym_polar.dialects import chat
from nemo_gym_polar.dialects.base import CallError, Endpoint

GENERATE = Endpoint("generate", ("POST",))


def parse(body: dict[str, Any] | bytes) -> Request:
    data = body if isinstance(body, bytes) else orjson.dumps({"model": "m", "messages": [user("hi")], **body})
    return chat.parse(data, GENERATE, {})


def message(wire: dict[str, Any]) -> Message:
    return parse({"messages": [wire]}).conversation.messages[0]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def refused(body: dict[str, Any] | bytes) -> CallError:
    with pytest.raises(CallError) as caught:
        parse(body)
    assert caught.value.status == 400
    return caught.value


def test_pi() -> None:
    """The body of Pi's second request, shortened."""
    request = parse(
        {
            "messages": [
                {"role": "system", "content": "You are an expert coding assistant."},
                user([{"type": "text", "text": "Create hello.txt"}]),
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "bash", "arguments": '{"command":"ls"}'},
                        }
                    ],
                },
                {"role": "tool", "content": "(no output)", "tool_call_id": "call_1"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "store": False,
            "max_completion_tokens": 16384,
            "reasoning_effort": "medium",
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "bash",
                        "description": "Run",
                        "parameters": {"type": "object"},
                        "strict": False,
                    },
                }
            ],
        }
    )
    assert request.conversation.messages == (
        Message("system", (Text("You are an expert coding assistant."),)),
        Message("user", (Text("Create hello.txt"),)),
        Message("assistant", (ToolCall("call_1", "bash", '{"command":"ls"}'),)),
        Message("tool", (ToolResult("call_1", (Text("(no output)"),)),)),
    )
    assert request.conversation.tools == (Tool("bash", "Run", {"type": "object"}),)
    assert request.sampling == Sampling(max_tokens=16384)
    assert (request.stream, request.stream_usage, request.tool_choice) == (True, True, "auto")


def test_qwen_code_sends_lists_and_reasoning() -> None:
    echoed = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "Let me think.",
        "tool_calls": [
            {"id": "a", "function": {"name": "read", "arguments": ""}},
            {"id": "b", "function": {"name": "read", "arguments": "{not json"}},
        ],
    }
    assert message(echoed).parts == (
        Reasoning("Let me think."),
        ToolCall("a", "read", ""),
        ToolCall("b", "read", "{not json"),
    )
    result = {"role": "tool", "tool_call_id": "a", "name": "read", "content": [{"type": "text", "text": "x"}, "y"]}
    assert message(result).parts == (ToolResult("a", (Text("x"), Text("y")), name="read"),)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_developer_is_the_system(role: str) -> None:
    assert message({"role": role, "content": "Be brief."}) == Message("system", (Text("Be brief."),))


@pytest.mark.parametrize("content", [None, "", []])
def test_no_content_is_no_part(content: object) -> None:
    assert message(user(content)).parts == ()
    assert message({"role": "assistant", "content": content}).parts == ()


def test_images_and_unknown_parts_are_kept() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.invalid/a.png"},
        audio,
    ]
    assert message(user(parts)).parts == (
        Image("data:image/png;base64,AAAA"),
        Image("https://example.invalid/a.png"),
        Opaque("chat", audio),
    )
    custom = {"type": "custom", "id": "c", "custom": {"name": "patch", "input": "x"}}
    assert message({"role": "assistant", "tool_calls": [custom]}).parts == (ToolCall("c", "patch", '{"input":"x"}'),)


def test_arguments_that_came_as_an_object_become_text() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}
    assert message({"role": "assistant", "tool_calls": [call]}).tool_calls[0].arguments == '{"x":1}'


def test_tools_that_run_elsewhere_are_left_out() -> None:
    declared = [{"type": "web_search"}, {"type": "function", "function": {"name": "f"}}]
    assert parse({"tools": declared}).conversation.tools == (Tool("f", "", {}),)


def test_unknown_fields_change_nothing() -> None:
    plain = parse({})
    strange = parse({"service_tier": "flex", "metadata": [1], "logit_bias": "?", "verbosity": {}, "n": 1})
    assert strange == plain


@pytest.mark.parametrize(
    ("choice", "canonical"),
    [
        (None, "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "bash"}}, "function:bash"),
        ({"type": "allowed_tools"}, "auto"),
    ],
)
def test_tool_choice(choice: object, canonical: str) -> None:
    assert parse({"tool_choice": choice}).tool_choice == canonical


def test_sampling_values() -> None:
    asked = {"temperature": 0, "top_p": 0.5, "top_k": 3.0, "max_tokens": 9, "stop": "END", "seed": 4}
    assert parse(asked).sampling == Sampling(0.0, 0.5, 3, 9, ("END",), 4)
    both = {"max_tokens": 9, "max_completion_tokens": 5, "stop": ["a", "b"]}
    assert parse(both).sampling == Sampling(max_tokens=5, stop=("a", "b"))


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({"messages": None}, "messages", "expected an array, got null"),
        ({"messages": []}, "messages", "at least one message"),
        ({"messages": ["hi"]}, "messages[0]", "expected an object, got a string"),
        ({"messages": [user("a"), {"content": "b"}]}, "messages[1].role", "None"),
        ({"messages": [{"role": "wizard"}]}, "messages[0].role", "'wizard'"),
        ({"messages": [user(5)]}, "messages[0].content", "expected an array, got a number"),
        ({"messages": [user([{"type": "text"}])]}, "messages[0].content[0].text", "got null"),
        (
            {"messages": [user([{"type": "image_url", "image_url": {}}])]},
            "messages[0].content[0].image_url.url",
            "null",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
            "messages[0].tool_calls[0].function.name",
            "expected a string",
        ),
        ({"model": None}, "model", "expected a string, got null"),
        ({"tools": "bash"}, "tools", "expected an array, got a string"),
        ({"tools": [{"function": {"name": 3}}]}, "tools[0].function.name", "got a number"),
        ({"temperature": "hot"}, "temperature", "expected a number, got a string"),
        ({"max_tokens": 0}, "max_tokens", "below the minimum of 1"),
        ({"max_tokens": 1.5}, "max_tokens", "expected an integer"),
        ({"max_tokens": True}, "max_tokens", "got a boolean"),
        ({"stop": [1]}, "stop[0]", "got a number"),
        ({"stream": "yes"}, "stream", "expected a boolean"),
        ({"stream_options": 1}, "stream_options", "expected an object"),
        ({"n": 0}, "n", "minimum of 1"),
        ({"n": 129}, "n", "maximum of 128"),
    ],
)
def test_a_wrong_field_is_named(body: dict[str, Any], param: str, said: str) -> None:
    error = refused(body)
    assert error.param == param
    assert said in error.message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"a":NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    assert "request body" in refused(body).message


def test_half_an_emoji_is_let_through() -> None:
    """Programs in JavaScript cut long outputs inside a surrogate pair."""
    body = b'{"model":"m","messages":[{"role":"user","content":"cut \\ud83d, whole \\ud83d\\ude00"}]}'
    assert parse(body).conversation.messages[0].text == "cut ?, whole \N{GRINNING FACE}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = """role content type text image_url url tool_calls id function name arguments tool_call_id reasoning_content
reasoning parameters description"""
names = st.sampled_from(NAMES.split())
shaped = st.recursive(
    json_values | st.sampled_from(["user", "assistant", "tool", "system", "text", "image_url", "function"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=20,
)
FIELDS = [
    "messages",
    "tools",
    "tool_choice",
    "stream_options",
    "stop",
    "temperature",
    "max_tokens",
    "seed",
    "n",
    "top_k",
]
bodies = st.dictionaries(st.sampled_from([*FIELDS, "stream", "model"]), shaped, max_size=6)


@given(bodies)
def test_any_json_is_parsed_or_refused(body: dict[str, Any]) -> None:
    try:
        data = orjson.dumps(body)
    except TypeError:  # an integer beyond 64 bits, a lone surrogate
        return
    try:
        chat.parse(data, GENERATE, {})
    except CallError as error:
        assert error.status == 400
        assert orjson.loads(chat.error(error))["error"]["message"]


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    with pytest.raises(CallError):
        chat.parse(data, GENERATE, {})
