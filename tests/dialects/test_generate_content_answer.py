# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a generateContent client reads: the answer whole, in events or as an array; counts, models, errors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest
from google.genai.types import GenerateContentResponse
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
from nemo_gym_polar.dialects import generate_content
from nemo_gym_polar.dialects.base import CallError, Endpoint, ErrorKind
from nemo_gym_polar.dialects.sealed import unseal
from nemo_gym_polar.forest.canonical import canonical_bytes

REQUEST = Request("generate_content", "m", Conversation(()), stream=True)
SHOWING = replace(REQUEST, echo={"includeThoughts": True})
# How the client that Gemini CLI has built in finds the next event.
JS_EVENT = re.compile("^\\s*data: ([^\n\r\u2028\u2029]*)(?:\n\n|\r\r|\r\n\r\n)")


def completion(*parts: Part, finish: FinishReason = "stop") -> Completion:
    choice = Choice(Message("assistant", parts), finish)
    return Completion("r1", 1700000000, "m", (choice,), Usage(10, 5, 3, 2))


def whole(answer: Completion, request: Request = REQUEST) -> Any:
    return orjson.loads(generate_content.answer(answer, request))


def events(answer: Completion, request: Request = REQUEST) -> list[Any]:
    rest = (generate_content.KEEP_ALIVE + b"".join(generate_content.stream(answer, request))).decode()
    found = []
    while event := JS_EVENT.match(rest):
        found.append(orjson.loads(event[1]))
        rest = rest[event.end() :]
    assert rest == ""
    return found


def array(answer: Completion, request: Request = REQUEST) -> Any:
    pieces = generate_content.stream(answer, replace(request, array=True))
    return orjson.loads(generate_content.KEEP_ALIVE + b"".join(pieces))


def parts(wire: Any, index: int = 0) -> list[Any]:
    said: list[Any] = wire["candidates"][index]["content"].get("parts", [])
    return said


def test_an_answer_is_what_the_sdk_expects() -> None:
    answer = completion(Reasoning("Hm."), Text("Hi"), ToolCall("c1", "f", '{"a":1}'), finish="tool_calls")
    parsed = GenerateContentResponse.model_validate_json(generate_content.answer(answer, REQUEST))
    assert parsed.function_calls and (parsed.function_calls[0].id, parsed.function_calls[0].args) == ("c1", {"a": 1})
    assert parsed.candidates and parsed.candidates[0].finish_reason == "STOP"
    assert (parsed.model_version, parsed.response_id) == ("m", "r1")
    used = parsed.usage_metadata
    assert used is not None
    assert (used.prompt_token_count, used.candidates_token_count, used.thoughts_token_count) == (10, 3, 2)
    assert (used.cached_content_token_count, used.total_token_count) == (3, 15)


def test_thoughts_are_shown_to_who_asks_and_sealed_for_all() -> None:
    answer = completion(Reasoning("Hm."), Text("Hi"))
    (text,) = parts(whole(answer))
    assert text["text"] == "Hi" and unseal(text["thoughtSignature"]) == "Hm."
    thought, said = parts(whole(answer, SHOWING))
    assert thought == {"text": "Hm.", "thought": True} and said == text


def test_the_first_call_is_signed_if_there_is_one() -> None:
    calls = [ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}")]
    text, first, second = parts(whole(completion(Reasoning("Hm."), Text("Hi"), *calls)))
    assert text == {"text": "Hi"}
    assert unseal(first["thoughtSignature"]) == "Hm."
    assert "thoughtSignature" not in second


def test_thinking_alone_is_signed_too() -> None:
    (part,) = parts(whole(completion(Reasoning("Hm."))))
    assert part["text"] == "" and unseal(part["thoughtSignature"]) == "Hm."


def test_saying_nothing_has_no_parts() -> None:
    assert whole(completion())["candidates"][0]["content"] == {"role": "model"}
    assert len(events(completion())) == 1


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "{", '{"a": 1} tail', "null"])
def test_arguments_that_are_no_object_are_told_and_not_called(arguments: str) -> None:
    answer = completion(Reasoning("Hm."), Text("Hi"), ToolCall("1", "f", "{}"), ToolCall("2", "g", arguments))
    for wire in (whole(answer), *events(answer)):
        (candidate,) = wire["candidates"]
        assert candidate["content"] == {"role": "model"}
        assert candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"
        assert candidate["finishMessage"] == f"Malformed function call: g({arguments})"
        GenerateContentResponse.model_validate(wire)


words = st.text(max_size=200)
calls = st.builds(
    ToolCall, st.text("abc", min_size=1), st.text("fgh", min_size=1), st.dictionaries(words, words).map(
        lambda value: orjson.dumps(value).decode()
    )
)  # fmt: skip


@given(words, words, st.lists(calls, max_size=3), st.booleans())
def test_chunks_say_what_the_answer_says(thought: str, said: str, called: list[ToolCall], shown: bool) -> None:
    answer = completion(Reasoning(thought), Text(said), *called)
    request = SHOWING if shown else REQUEST
    chunks = events(answer, request)
    assert array(answer, request) == chunks
    pieces = [part for chunk in chunks for part in parts(chunk)]
    assert "".join(part["text"] for part in pieces if "text" in part and "thought" not in part) == said
    assert "".join(part["text"] for part in pieces if "thought" in part) == (thought if shown else "")
    assert [part["functionCall"] for part in pieces if "functionCall" in part] == [
        part["functionCall"] for part in parts(whole(answer)) if "functionCall" in part
    ]
    assert sum("thoughtSignature" in part for part in pieces) == bool(thought)
    assert ["finishReason" in chunk["candidates"][0] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert ["usageMetadata" in chunk for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    for chunk in chunks:
        GenerateContentResponse.model_validate(chunk)


def echoed(chunks: list[Any]) -> list[Any]:
    """What Gemini CLI sends back: no thoughts, texts joined with what the first one says of itself."""
    kept: list[Any] = []
    for part in (part for chunk in chunks for part in parts(chunk) if not part.get("thought")):
        if kept and kept[-1].get("text") and isinstance(part.get("text"), str):
            kept[-1] = {**kept[-1], "text": kept[-1]["text"] + part["text"]}
        else:
            kept.append(part)
    return kept


@given(words.filter(str.strip), words, st.lists(calls, max_size=3), st.booleans())
def test_an_echo_without_thoughts_is_the_same_message(
    thought: str, said: str, called: list[ToolCall], shown: bool
) -> None:
    answer = completion(Reasoning(thought), Text(said), *called)
    contents = [{"role": "model", "parts": echoed(events(answer, SHOWING if shown else REQUEST))}]
    body = orjson.dumps({"contents": contents})
    (message,) = generate_content.parse(body, Endpoint("generate", ("POST",), model="m"), {}).conversation.messages
    assert canonical_bytes(message) == canonical_bytes(answer.first.message)
    assert [call.id for call in message.tool_calls] == [call.id for call in called]


@pytest.mark.parametrize(("reason", "wire"), [("stop", "STOP"), ("tool_calls", "STOP"), ("length", "MAX_TOKENS")])
def test_finish_reasons(reason: FinishReason, wire: str) -> None:
    assert events(completion(Text("x"), finish=reason))[-1]["candidates"][0]["finishReason"] == wire


def test_lines_end_only_where_events_do() -> None:
    answer = completion(Text("a\u2028b\u2029c\x85d\ne"))
    assert parts(events(answer)[0]) == [{"text": "a\u2028b\u2029c\x85d\ne"}]
    assert len(b"".join(generate_content.stream(answer, REQUEST)).decode().splitlines()) == 2


def test_several_candidates_are_told_apart_by_index() -> None:
    answer = completion(Text("one"))
    answer = replace(answer, choices=(*answer.choices, Choice(Message("assistant", (Text("two"),)), "length")))
    assert [parts(whole(answer), i) for i in (0, 1)] == [[{"text": "one"}], [{"text": "two"}]]
    streamed = [candidate for chunk in events(answer) for candidate in chunk["candidates"]]
    assert [candidate["index"] for candidate in streamed] == [0, 1]
    assert [candidate["finishReason"] for candidate in streamed] == ["STOP", "MAX_TOKENS"]


ERRORS: list[tuple[ErrorKind, int | None, int, str]] = [
    ("invalid_request", None, 400, "INVALID_ARGUMENT"),
    ("authentication", None, 401, "UNAUTHENTICATED"),
    ("not_found", None, 404, "NOT_FOUND"),
    ("too_large", None, 413, "INVALID_ARGUMENT"),
    ("rate_limit", None, 429, "RESOURCE_EXHAUSTED"),
    ("server", None, 500, "INTERNAL"),
    ("server", 503, 503, "UNAVAILABLE"),
]


@pytest.mark.parametrize(("kind", "status", "code", "name"), ERRORS)
def test_errors(kind: ErrorKind, status: int | None, code: int, name: str) -> None:
    error = orjson.loads(generate_content.error(CallError(kind, "no", status=status)))
    assert error == {"error": {"code": code, "message": "no", "status": name}}


def test_errors_tell_the_field_and_when_to_come_back() -> None:
    (field,) = orjson.loads(generate_content.error(CallError("invalid_request", "no", param="contents")))["error"][
        "details"
    ]
    assert field["fieldViolations"] == [{"field": "contents", "description": "no"}]
    (wait,) = orjson.loads(generate_content.error(CallError("rate_limit", "no", retry_after=2.5)))["error"]["details"]
    assert wait == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}


def test_a_context_that_is_too_long_is_told_in_google_s_words() -> None:
    error = CallError("context_overflow", "too long", param="messages", limit=8, asked=9)
    said = orjson.loads(generate_content.error(error))["error"]
    assert said["message"] == "The input token count (9) exceeds the maximum number of tokens allowed (8)."
    assert orjson.loads(generate_content.error(CallError("context_overflow", "x")))["error"]["message"] == "x"


def test_counts_and_models() -> None:
    details = [{"modality": "TEXT", "tokenCount": 7}]
    assert orjson.loads(generate_content.count(7)) == {"totalTokens": 7, "promptTokensDetails": details}
    (listed,) = orjson.loads(generate_content.models(["m"]))["models"]
    assert listed["name"] == "models/m"
    assert listed == orjson.loads(generate_content.model("m"))
    assert orjson.loads(generate_content.model("tunedModels/t"))["name"] == "tunedModels/t"
