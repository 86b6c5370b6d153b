# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a faithful echo may change, and what it may not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from nemo_gym_polar.forest.canonical import canonical_arguments, message_digest, tools_digest
from nemo_gym_polar.forest.messages import dump_message, dump_tools, load_message, load_tools
from tests.forest.world import EDIT, SHELL, assistant, call, user

TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXT, JSON, max_size=4)
CALLS = st.builds(ToolCall, TEXT, TEXT, ARGUMENTS.map(json.dumps) | TEXT)
PARTS = st.one_of(
    st.builds(Text, TEXT),
    st.builds(Reasoning, TEXT, st.none() | TEXT, st.none() | TEXT),
    st.builds(Image, TEXT),
    CALLS,
    st.builds(ToolResult, TEXT, st.lists(st.builds(Text, TEXT) | st.builds(Image, TEXT), max_size=2).map(tuple)),
    st.builds(Opaque, st.just("messages"), JSON),
)
MESSAGES = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]), st.lists(PARTS, max_size=4).map(tuple)
)


def same(one: Message, other: Message) -> bool:
    return message_digest(one) == message_digest(other)


@given(ARGUMENTS, st.randoms(use_true_random=False))
def test_arguments_written_anew_are_the_same(arguments: dict[str, Any], random: Any) -> None:
    keys = list(arguments)
    random.shuffle(keys)
    shuffled = {key: arguments[key] for key in keys}
    loose = json.dumps(arguments, indent=random.choice([None, 2]), ensure_ascii=random.choice([True, False]))
    assert same(assistant("", call("a", loose)), assistant("", call("b", json.dumps(shuffled, separators=(",", ":")))))


@given(MESSAGES)
def test_ids_signatures_and_cache_markers_do_not_count(message: Message) -> None:
    def touched(part: Any) -> Any:
        match part:
            case ToolCall():
                return replace(part, id="other")
            case ToolResult():
                return replace(part, call_id="other", name="other")
            case Reasoning():
                return replace(part, text=f"{part.text}\n ", signature="other", encrypted="other")
            case Opaque(_, dict() as value):
                return replace(part, value={**value, "cache_control": {"type": "ephemeral"}})
            case _:
                return part

    assert same(message, Message(message.role, tuple(map(touched, message.parts))))


@given(st.lists(TEXT, max_size=4))
def test_a_list_of_texts_is_their_text(texts: list[str]) -> None:
    assert same(Message("user", tuple(map(Text, texts))), user("".join(texts)))


@given(MESSAGES, MESSAGES)
def test_different_words_are_different_messages(one: Message, other: Message) -> None:
    if one.text.strip() != other.text.strip() or one.role != other.role:
        assert not same(one, other)


@given(ARGUMENTS, ARGUMENTS)
def test_different_arguments_are_different_calls(one: dict[str, Any], other: dict[str, Any]) -> None:
    equal = canonical_arguments(json.dumps(one)) == canonical_arguments(json.dumps(other))
    if not equal:
        assert not same(assistant("", call("a", json.dumps(one))), assistant("", call("a", json.dumps(other))))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"n": 10000.0}', '{"n":10000}', True),
        ('{"n": "5000"}', '{"n":5000}', True),
        ('{"n": 1e3}', '{"n":1000}', True),
        ('{"s": "\\u00e9"}', '{"s":"é"}', True),
        ('{"v": "1.10"}', '{"v":1.1}', False),
        ('{"v": "007"}', '{"v":7}', False),
        ('{"v": "1e400"}', '{"v":"1e400"}', True),
        ('{"v": "12345678901234567890"}', '{"v":12345678901234567891}', False),
        ("", "{}", True),
        ('{"a": ', '{"a":', True),
        ('{"a": ', "{}", False),
        ('{"a": true}', '{"a": 1}', False),
        ('{"a": null}', "{}", False),
    ],
)
def test_arguments_in_another_style(one: str, other: str, equal: bool) -> None:
    assert same(assistant("", call("a", one)), assistant("", call("a", other))) is equal


def test_empty_content_is_no_content() -> None:
    assert same(Message("assistant", (Text(""), call("a"))), Message("assistant", (call("b"),)))
    assert same(Message("user", ()), user(""))
    assert same(assistant("hi", reasoning=" \n"), assistant("hi"))


def test_an_error_is_not_a_success() -> None:
    def shown(is_error: bool) -> Message:
        return Message("tool", (ToolResult("a", (Text("x"),), is_error),))

    assert not same(shown(True), shown(False))


def test_tools_count_by_what_they_declare() -> None:
    shuffled = replace(SHELL, parameters=dict(reversed(list(SHELL.parameters.items()))))
    assert tools_digest([SHELL]) == tools_digest([shuffled])
    assert tools_digest([SHELL, EDIT]) != tools_digest([EDIT, SHELL])
    assert tools_digest([SHELL]) != tools_digest([replace(SHELL, description="other")])


@given(MESSAGES)
def test_messages_survive_the_journal(message: Message) -> None:
    written = json.loads(json.dumps(dump_message(message)))
    assert load_message(written) == message


def test_tools_survive_the_journal() -> None:
    assert load_tools(json.loads(json.dumps(dump_tools((SHELL, EDIT))))) == (SHELL, EDIT)
