# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a Chat Completions client reads: the answer whole, the answer in events, errors, models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

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
from nemo_gym_polar.dialects import chat, registry
from nemo_gym_polar.dialects.base import CallError, Endpoint, ErrorKind, Target

REQUEST = Request("chat", "m", Conversation(()), stream=True, stream_usage=True)


def completion(*parts: Part, finish: FinishReason = "stop") -> Completion:
    choice = Choice(Message("assistant", parts), finish)
    return Completion("chatcmpl-1", 1700000000, "m", (choice,), Usage(10, 5, 3, 2))


def events(answer: Completion, request: Request = REQUEST) -> list[Any]:
    raw = b"".join(chat.stream(answer, request)).decode()
    lines = raw.split("\n\n")
    assert lines.pop() == ""
    assert lines.pop() == "data: [DONE]"
    assert all(line.startswith("data: ") for line in lines)
    return [orjson.loads(line[6:]) for line in lines]


def test_an_answer_is_what_the_sdk_expects() -> None:
    wire = orjson.loads(
        chat.answer(
            completion(Reasoning("Hm."), Text("Hi"), ToolCall("call_1", "f", "{"), finish="tool_calls"), REQUEST
        )
    )
    parsed = ChatCompletion.model_validate(wire, strict=True)
    choice = parsed.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Hi"
    assert choice.message.tool_calls and choice.message.tool_calls[0].type == "function"
    assert choice.message.tool_calls[0].function.arguments == "{"
    assert wire["choices"][0]["message"]["reasoning_content"] == "Hm."
    assert parsed.usage and parsed.usage.total_tokens == 15
    assert parsed.usage.prompt_tokens_details and parsed.usage.prompt_tokens_details.cached_tokens == 3


def test_content_is_null_only_beside_tool_calls() -> None:
    silent = orjson.loads(chat.answer(completion(), REQUEST))["choices"][0]["message"]
    assert silent["content"] == "" and "tool_calls" not in silent
    calling = orjson.loads(chat.answer(completion(ToolCall("1", "f", "{}")), REQUEST))["choices"][0]["message"]
    assert calling["content"] is None


words = st.text(max_size=200)
calls = st.builds(ToolCall, st.text("abc", min_size=1), st.text("fgh", min_size=1), words)


@given(words, words, st.lists(calls, max_size=3))
def test_events_say_what_the_answer_says(thought: str, said: str, called: list[ToolCall]) -> None:
    answer = completion(Reasoning(thought), Text(said), *called)
    chunks = events(answer)
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == thought
    assert "".join(delta.get("content", "") for delta in deltas) == said
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls", [])]
    for index, call in enumerate(called):
        mine = [piece for piece in pieces if piece["index"] == index]
        assert (mine[0]["id"], mine[0]["function"]["name"]) == (call.id, call.name)
        assert "".join(piece["function"]["arguments"] for piece in mine) == call.arguments
    assert [chunk["choices"] and chunk["choices"][0]["finish_reason"] for chunk in chunks[-3:]] == [None, "stop", []]
    assert chunks[-1]["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "length"])
def test_finish_reasons(reason: Any) -> None:
    assert events(completion(Text("x"), finish=reason))[-2]["choices"][0]["finish_reason"] == reason


ERRORS: list[tuple[ErrorKind, int, str, str | None]] = [
    ("invalid_request", 400, "invalid_request_error", None),
    ("authentication", 401, "invalid_request_error", "invalid_api_key"),
    ("not_found", 404, "invalid_request_error", None),
    ("context_overflow", 400, "invalid_request_error", "context_length_exceeded"),
    ("rate_limit", 429, "rate_limit_error", "rate_limit_exceeded"),
    ("server", 500, "server_error", None),
]


@pytest.mark.parametrize(("kind", "status", "type_", "code"), ERRORS)
def test_errors(kind: ErrorKind, status: int, type_: str, code: str | None) -> None:
    error = CallError(kind, "no", param="messages")
    assert error.status == status
    assert orjson.loads(chat.error(error)) == {
        "error": {"message": "no", "type": type_, "param": "messages", "code": code}
    }


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/v1/chat/completions", "generate"), ("/v1/models", "models"), ("/v1/models/a/b", "model"), ("/v1/x", None)],
)
def test_paths(path: str, kind: str | None) -> None:
    dialect, endpoint = registry.find(Target(path))
    assert dialect.NAME == "chat"
    assert (endpoint and endpoint.kind) == kind


CUSTOM = {"type": "custom", "custom": {"name": "patch", "description": "Edit.", "format": {"type": "text"}}}


def test_custom_tools_are_called_with_plain_text() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [CUSTOM]}
    request = chat.parse(orjson.dumps(asked), Endpoint("generate", ("POST",)), {})
    (tool,) = request.conversation.tools
    assert (tool.kind, list(tool.parameters["properties"])) == ("custom", ["input"])
    answer = completion(ToolCall("call_1", "patch", orjson.dumps({"input": "*** Begin"}).decode()))
    (call,) = orjson.loads(chat.answer(answer, request))["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    asked["messages"] += [{"role": "assistant", "tool_calls": [call]}]
    echoed = chat.parse(orjson.dumps(asked), Endpoint("generate", ("POST",)), {}).conversation.messages[-1]
    assert echoed.tool_calls == answer.first.message.tool_calls


def test_several_choices_are_told_apart_by_index() -> None:
    answer = completion(Text("one"))
    answer = replace(answer, choices=(*answer.choices, Choice(Message("assistant", (Text("two"),)), "length")))
    assert [c["message"]["content"] for c in orjson.loads(chat.answer(answer, REQUEST))["choices"]] == ["one", "two"]
    said: dict[int, str] = {}
    for chunk in events(answer):
        for choice in chunk["choices"]:
            said[choice["index"]] = said.get(choice["index"], "") + choice["delta"].get("content", "")
    assert said == {0: "one", 1: "two"}
