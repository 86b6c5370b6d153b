# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sampling values that leave nothing open, and messages as servers parse them."""

from __future__ import annotations

from typing import Any

import pytest

from nemo_gym_polar.chat import Reasoning, Sampling, Text, ToolCall
from nemo_gym_polar.engines import openai_wire


def test_a_server_has_nothing_to_fill_in() -> None:
    said = openai_wire.parameters(Sampling(temperature=0.5))
    assert said == {
        "temperature": 0.5,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    assert openai_wire.given(Sampling(temperature=0.5, stop=("a",))) == {"temperature": 0.5, "stop": ["a"]}


def call(**function: Any) -> dict[str, Any]:
    return {"message": {"tool_calls": [{"id": "1", "function": function}]}}


@pytest.mark.parametrize(
    ("choice", "parts"),
    [
        ({}, ()),
        ({"message": {"content": "a", "reasoning": "b"}}, (Reasoning("b"), Text("a"))),
        ({"message": {"content": None, "reasoning_content": "b"}}, (Reasoning("b"),)),
        (call(name="f", arguments='{"a":1}'), (ToolCall("1", "f", '{"a":1}'),)),
        (call(name="f", arguments={"a": 1}), (ToolCall("1", "f", '{"a":1}'),)),
        (call(name="f", arguments=None), (ToolCall("1", "f", ""),)),
    ],
)
def test_messages_are_read(choice: dict[str, Any], parts: tuple[Any, ...]) -> None:
    assert openai_wire.answered(choice).parts == parts


@pytest.mark.parametrize(
    "choice",
    [
        {"message": "x"},
        {"message": {"content": ["x"]}},
        {"message": {"reasoning": 5}},
        {"message": {"tool_calls": [{}]}},
        {"message": {"tool_calls": ["x"]}},
        call(name=5),
        call(name="f", arguments=[1]),
    ],
)
def test_what_is_no_message_is_not_taken_for_one(choice: dict[str, Any]) -> None:
    with pytest.raises((TypeError, LookupError, AttributeError)):
        openai_wire.answered(choice)
