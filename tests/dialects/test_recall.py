# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What is found again must be what would have been read: in every dialect, whatever a harness does to its history."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any, ClassVar
from weakref import WeakSet

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.chat import Request
from nemo_gym_polar.dialects import chat, generate_content, messages, responses
from nemo_gym_polar.dialects.base import CallError, Dialect, Endpoint
from nemo_gym_polar.dialects.recall import Recall

# Python takes some of these for each other; a model does not.
VALUES: list[Any] = [1, True, 1.0, 0, False, "1", None, {}, [], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
TEXTS = ["ls", "ls -l", ""]

CHAT: list[Callable[[str, Any], Any]] = [
    lambda text, value: {"role": "user", "content": text},
    lambda text, value: {"role": "user", "content": [{"type": "text", "text": text}, {"type": "odd", "value": value}]},
    lambda text, value: {"role": "assistant", "content": text, "tool_calls": [_chat_call({"value": value})]},
    lambda text, value: {"role": "tool", "tool_call_id": "call_1", "content": text},
    lambda text, value: {"role": "user", "content": value},
]
MESSAGES: list[Callable[[str, Any], Any]] = [
    lambda text, value: {"role": "user", "content": text},
    lambda text, value: {"role": "user", "content": [_result([{"type": "tool_reference", "tool_name": "bash"}])]},
    lambda text, value: {"role": "user", "content": [_result(text), {"type": "text", "text": text}]},
    lambda text, value: {"role": "assistant", "content": [_use({"value": value})]},
    lambda text, value: {"role": "assistant", "content": [{"type": "odd", "value": value}]},
    lambda text, value: {"role": value, "content": text},
]
RESPONSES: list[Callable[[str, Any], Any]] = [
    lambda text, value: {"role": "user", "content": text},
    lambda text, value: {"role": "assistant", "content": text},
    lambda text, value: {"type": "function_call", "call_id": "c", "name": "bash", "arguments": text},
    lambda text, value: {"type": "function_call_output", "call_id": "c", "output": text},
    lambda text, value: {"type": "tool_search_call", "call_id": "s", "arguments": {"value": value}},
    lambda text, value: {"type": "additional_tools", "tools": [_function(text or "t", {"value": value})]},
    lambda text, value: {"type": "odd", "value": value},
    lambda text, value: {"type": "item_reference", "id": text},
]
CONTENTS: list[Callable[[str, Any], Any]] = [
    lambda text, value: {"role": "user", "parts": [{"text": text}]},
    lambda text, value: {"role": "model", "parts": [{"functionCall": {"name": "bash", "args": {"value": value}}}]},
    lambda text, value: {"role": "model", "parts": [{"functionCall": {"name": text or "t", "args": {}, "id": "x"}}]},
    lambda text, value: {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"a": value}}}]},
    lambda text, value: {"role": "user", "parts": [{"odd": value}]},
    lambda text, value: {"role": value, "parts": [{"text": text}]},
]


def _chat_call(arguments: Any) -> Any:
    return {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": arguments}}


def _use(given: Any) -> Any:
    return {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": given}


def _result(content: Any) -> Any:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}


def _function(name: str, schema: Any) -> Any:
    return {"type": "function", "name": name, "parameters": schema}


def _declared(kind: str, value: Any) -> Any:
    schema = {"type": "object", "default": value}
    return {
        "chat": [{"type": "function", "function": {"name": "bash", "parameters": schema}}],
        "messages": [{"name": "bash", "input_schema": schema}],
        "responses": [_function("bash", schema)],
        "generate_content": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": schema}]}],
    }[kind]


DIALECTS: Mapping[str, tuple[Dialect, str, list[Callable[[str, Any], Any]]]] = {
    "chat": (chat, "messages", CHAT),
    "messages": (messages, "messages", MESSAGES),
    "responses": (responses, "input", RESPONSES),
    "generate_content": (generate_content, "contents", CONTENTS),
}


def _read(kind: str, items: list[Any], tools: Any, recall: Recall | None) -> Request | str:
    dialect, name, _ = DIALECTS[kind]
    body = orjson.dumps({"model": "m", "max_tokens": 5, name: items, "tools": _declared(kind, tools)})
    try:
        return dialect.parse(body, Endpoint("generate", ("POST",), model="m"), {}, recall)
    except CallError as error:
        return error.message


Spec = tuple[int, str, int]  # which item, what it says, which value


@st.composite
def sessions(draw: st.DrawFn) -> list[tuple[str, list[Spec], Any]]:
    """Requests of one session: each goes on from, cuts or changes one before it; dialects and agents take turns."""
    asked: list[tuple[str, list[Spec], Any]] = []
    kinds = draw(st.lists(st.sampled_from(list(DIALECTS)), min_size=1, max_size=2))
    for _ in range(draw(st.integers(2, 8))):
        kind = draw(st.sampled_from(kinds))
        specs = list(draw(st.sampled_from([[], *(specs for other, specs, _ in asked if other == kind)])))
        match draw(st.sampled_from(["append", "append", "cut", "change"])):
            case "cut":
                del specs[draw(st.integers(0, len(specs))) :]
            case "change" if specs:
                at = draw(st.integers(0, len(specs) - 1))
                specs[at] = (*specs[at][:2], draw(_values))
        spec = st.tuples(st.integers(0, len(DIALECTS[kind][2]) - 1), st.sampled_from(TEXTS), _values)
        specs += draw(st.lists(spec, max_size=3))
        asked.append((kind, specs, draw(st.sampled_from(VALUES[:3]))))
    return asked


_values = st.integers(0, len(VALUES) - 1)


@settings(max_examples=200, deadline=None)
@given(sessions())
def test_what_is_found_again_is_what_would_be_read(session: list[tuple[str, list[Spec], Any]]) -> None:
    recall = Recall()
    for kind, specs, tools in session:
        items = [DIALECTS[kind][2][which](text, VALUES[value]) for which, text, value in specs]
        # As text: Python's equality takes 1 for True, and one order of keys for another.
        assert repr(_read(kind, items, tools, recall)) == repr(_read(kind, items, tools, None))


@pytest.mark.parametrize("kind", DIALECTS)
def test_an_item_that_differs_only_in_a_value_is_another(kind: str) -> None:
    for make in DIALECTS[kind][2]:
        for before, after in permutations(VALUES, 2):
            recall = Recall()
            _read(kind, [make("ls", before)], 1, recall)
            items = [make("ls", after)]
            assert repr(_read(kind, items, 1, recall)) == repr(_read(kind, items, 1, None))


@pytest.mark.parametrize("kind", DIALECTS)
def test_what_was_said_before_is_the_very_same(kind: str) -> None:
    first, second = (make("ls", 1) for make in DIALECTS[kind][2][:2])
    recall = Recall()
    before = _read(kind, [first], 1, recall)
    after = _read(kind, [first, second], 1, recall)
    assert isinstance(before, Request)
    assert isinstance(after, Request)
    assert after.conversation.messages[0] is before.conversation.messages[0]
    assert after.conversation.callable_tools[0] is before.conversation.callable_tools[0]


def test_agents_that_take_turns_are_both_known() -> None:
    recall = Recall()
    histories: list[list[Any]] = [[CHAT[0](f"agent {n}", 0)] for n in range(3)]
    firsts = [_messages_of(_read("chat", history, 1, recall))[0] for history in histories]
    for turn in range(5):
        for history, first in zip(histories, firsts, strict=True):
            history.append(CHAT[0](f"turn {turn}", 0))
            assert _messages_of(_read("chat", history, 1, recall))[0] is first


def _messages_of(request: Request | str) -> tuple[Any, ...]:
    assert isinstance(request, Request)
    return request.conversation.messages


class Counted:
    """A reader that is counted while it is alive."""

    alive: ClassVar[WeakSet[Counted]] = WeakSet()

    def __init__(self) -> None:
        self.alive.add(self)

    def read(self, item: Any, path: str) -> None: ...

    def copy(self) -> Counted:
        return Counted()


def test_only_the_last_histories_and_values_are_kept() -> None:
    recall = Recall()
    for n in range(100):
        recall.history(Counted(), [n], "items")
        recall.history(Counted(), [n, n], "items")
        recall.value(lambda _: Counted(), n)
    gc.collect()
    assert 0 < len(Counted.alive) <= 12


def test_an_item_that_is_nested_too_deeply_is_read_each_time() -> None:
    deep: Any = "end"
    for _ in range(300):
        deep = [deep]
    recall = Recall()
    item = {"role": "user", "content": [{"type": "odd", "value": deep}]}
    for _ in range(2):
        assert _messages_of(_read_raw([item], recall)) == _messages_of(_read_raw([item], None))


def _read_raw(items: list[Any], recall: Recall | None) -> Request:
    body = orjson.dumps({"model": "m", "messages": []})
    deep = body.replace(b"[]", json.dumps(items).encode())
    return chat.parse(deep, Endpoint("generate", ("POST",)), {}, recall)
