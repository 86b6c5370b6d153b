# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a Messages client reads: the answer whole, the answer in events, errors, models, counts."""

from __future__ import annotations

from typing import Any

import anthropic.types as wire
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import (
    Choice,
    Completion,
    Conversation,
    FinishReason,
    Message,
    Part,
    Reasoning,
    Request,
    Text,
    ToolCall,
    Usage,
)
from nemo_gym_polar.dialects import messages, sealed
from nemo_gym_polar.dialects.base import CallError, Endpoint, ErrorKind
from nemo_gym_polar.forest.canonical import message_digest

REQUEST = Request("messages", "m", Conversation(()), stream=True)
EVENTS = {
    "message_start": wire.RawMessageStartEvent,
    "content_block_start": wire.RawContentBlockStartEvent,
    "content_block_delta": wire.RawContentBlockDeltaEvent,
    "content_block_stop": wire.RawContentBlockStopEvent,
    "message_delta": wire.RawMessageDeltaEvent,
    "message_stop": wire.RawMessageStopEvent,
}


def completion(*parts: Part, finish: FinishReason = "stop", stop: str | None = None) -> Completion:
    choice = Choice(Message("assistant", parts), finish, stop)
    return Completion("msg_1", 1700000000, "m", (choice,), Usage(10, 5, 3, 2))


def answer(*parts: Part, request: Request = REQUEST, **how: Any) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(messages.answer(completion(*parts, **how), request))
    return body


def events(done: Completion, request: Request = REQUEST) -> list[dict[str, Any]]:
    raw = messages.opening(done.id, done.created, request) + b"".join(messages.stream(done, request))
    chunks = raw.decode().split("\n\n")
    assert chunks.pop() == ""
    found = []
    for chunk in chunks:
        name, data = chunk.split("\n")
        found.append(orjson.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def gathered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks that a stream says; a call's input as text."""
    blocks: list[dict[str, Any]] = []
    for event in found:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append({**event["content_block"], "input": ""})
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            name = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}.get(
                delta["type"]
            )
            blocks[-1][name or "input"] += delta[name or "partial_json"]
    return blocks


def test_an_answer_is_what_the_sdk_expects() -> None:
    body = answer(Reasoning("Hm."), Text("Hi"), ToolCall("toolu_1", "Bash", '{"n": 1.0}'), finish="tool_calls")
    parsed = wire.Message.model_validate(body)
    thinking, text, call = parsed.content
    assert (thinking.type, text.type, call.type) == ("thinking", "text", "tool_use")
    assert isinstance(thinking, wire.ThinkingBlock) and thinking.thinking == "Hm."
    assert sealed.unseal(thinking.signature) == "Hm."
    assert isinstance(call, wire.ToolUseBlock) and call.input == {"n": 1.0}
    assert (parsed.role, parsed.model, parsed.stop_reason, parsed.stop_sequence) == ("assistant", "m", "tool_use", None)
    usage = parsed.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (7, 3, 0)
    assert (usage.output_tokens, usage.service_tier) == (5, "standard")


REASONS: list[tuple[dict[str, Any], str, str | None]] = [
    ({}, "end_turn", None),
    ({"finish": "tool_calls"}, "tool_use", None),
    ({"finish": "length"}, "max_tokens", None),
    ({"stop": "END"}, "stop_sequence", "END"),
]


@pytest.mark.parametrize(("how", "reason", "sequence"), REASONS)
def test_stop_reasons(how: dict[str, Any], reason: str, sequence: str | None) -> None:
    body = answer(Text("x"), **how)
    assert (body["stop_reason"], body["stop_sequence"]) == (reason, sequence)
    delta = next(event for event in events(completion(Text("x"), **how)) if event["type"] == "message_delta")["delta"]
    assert delta == {"stop_reason": reason, "stop_sequence": sequence}


@pytest.mark.parametrize("arguments", ['{"command": "ls', "[1]", "ls -la", '"x"', "5"])
def test_arguments_that_are_no_object(arguments: str) -> None:
    """Verbatim in a stream; whole in the form that Claude Code has for them."""
    call = ToolCall("toolu_1", "Bash", arguments)
    assert gathered(events(completion(call)))[0]["input"] == arguments
    (block,) = answer(call)["content"]
    assert block["input"] == {"__unparsedToolInput": {"raw": arguments, "len": len(arguments)}}
    assert echoed(answer(call)["content"]).tool_calls == (call,)


def test_no_arguments_are_an_empty_object() -> None:
    assert answer(ToolCall("toolu_1", "f", ""))["content"][0]["input"] == {}


def test_thinking_can_be_left_out_and_still_comes_back() -> None:
    body = orjson.dumps(
        {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}],
         "thinking": {"type": "adaptive", "display": "omitted"}}
    )  # fmt: skip
    request = messages.parse(body, Endpoint("generate", ("POST",)), {})
    done = completion(Reasoning("Secret."), Text("Hi"))
    assert b"Secret." not in messages.answer(done, request) + b"".join(messages.stream(done, request))
    assert echoed(answer(*done.first.message.parts, request=request)["content"]) == done.first.message
    assert echoed(gathered(events(done, request))).reasoning == "Secret."


def test_the_order_of_events() -> None:
    kinds = [event["type"] for event in events(completion(Text("Hi")))]
    assert kinds == ["message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop",
                     "message_delta", "message_stop"]  # fmt: skip


def test_a_long_text_comes_in_several_deltas() -> None:
    kinds = [event["type"] for event in events(completion(Text("word " * 100)))]
    assert kinds.count("content_block_delta") > 5


def test_usage_in_a_stream() -> None:
    found = events(completion(Text("Hi")))
    assert found[0]["message"]["usage"]["input_tokens"] == 7
    assert found[0]["message"]["content"] == []
    assert found[-2]["usage"] == {
        "input_tokens": 7,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 3,
        "output_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 2},
    }


words = st.text(max_size=200)
json_text = st.dictionaries(st.text(max_size=5), st.none() | st.integers(-9, 9) | st.text(max_size=9)).map(
    lambda value: orjson.dumps(value).decode()
)
calls = st.builds(ToolCall, st.text("abc_-", min_size=1), st.text("fgh", min_size=1), json_text | words)
parts = st.tuples(words.map(Reasoning), words.map(Text), st.lists(calls, max_size=3)).map(
    lambda made: tuple(part for part in (made[0], made[1]) if part.text) + tuple(made[2])
)


def echoed(blocks: list[dict[str, Any]]) -> Message:
    """What a harness's history makes of an answer."""
    turn = {"role": "assistant", "content": blocks}
    body = {"model": "m", "max_tokens": 1, "messages": [turn]}
    return messages.parse(orjson.dumps(body), Endpoint("generate", ("POST",)), {}).conversation.messages[0]


@given(parts)
def test_an_answer_comes_back_as_the_same_message(said: tuple[Part, ...]) -> None:
    message = Message("assistant", said)
    assert message_digest(echoed(answer(*said)["content"])) == message_digest(message)


@given(parts)
def test_events_say_what_the_answer_says(said: tuple[Part, ...]) -> None:
    found = events(completion(*said, finish="tool_calls"))
    for event in found:
        if event["type"] != "ping":
            EVENTS[event["type"]].model_validate(event)
    whole = answer(*said, finish="tool_calls")["content"]
    streamed = gathered(found)
    assert [block["type"] for block in streamed] == [block["type"] for block in whole]
    texts = {"text": "text", "thinking": "thinking"}
    for one, other, part in zip(streamed, whole, said, strict=True):
        if isinstance(part, ToolCall):
            assert (one["id"], one["name"], one["input"]) == (part.id, part.name, part.arguments)
        else:
            assert one[texts[one["type"]]] == other[texts[other["type"]]] == part.text  # type: ignore[union-attr]  # text or thinking
        assert one.get("signature") == other.get("signature")


ERRORS: list[tuple[ErrorKind, int | None, int, str]] = [
    ("invalid_request", None, 400, "invalid_request_error"),
    ("authentication", None, 401, "authentication_error"),
    ("not_found", None, 404, "not_found_error"),
    ("too_large", None, 413, "request_too_large"),
    ("rate_limit", None, 429, "rate_limit_error"),
    ("rate_limit", 503, 503, "overloaded_error"),
    ("server", 529, 529, "overloaded_error"),
    ("server", None, 500, "api_error"),
    ("server", 504, 504, "timeout_error"),
    ("context_overflow", None, 400, "invalid_request_error"),
]


@pytest.mark.parametrize(("kind", "given_status", "status", "type_"), ERRORS)
def test_errors(kind: ErrorKind, given_status: int | None, status: int, type_: str) -> None:
    failure = CallError(kind, "no", status=given_status)
    body = orjson.loads(messages.error(failure))
    assert failure.status == status
    assert (body["type"], body["error"]["type"]) == ("error", type_)
    assert body["request_id"].startswith("req_")


def test_an_overflow_is_said_as_claude_code_knows_it() -> None:
    known = orjson.loads(messages.error(CallError("context_overflow", "too long", asked=9, limit=8)))
    assert known["error"]["message"] == "prompt is too long: 9 tokens > 8 maximum"
    unknown = orjson.loads(messages.error(CallError("context_overflow", "no room")))
    assert unknown["error"]["message"] == "prompt is too long: no room"


def test_models_and_counts() -> None:
    assert orjson.loads(messages.count(7)) == {"input_tokens": 7}
    listed = orjson.loads(messages.models(["a", "b"]))
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("a", "b", False)
    for entry in (*listed["data"], orjson.loads(messages.model("c"))):
        wire.ModelInfo.model_validate(entry)
    assert orjson.loads(messages.models([]))["first_id"] is None
