# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from nemo_gym_polar.policy.synthetic import ANSWER, COMMANDS, SHELL, TOOLS, Chat, act, mixed, short_copy
from nemo_gym_polar.tasks.wording import FILE_NAMES

MAKERS = (short_copy, act, mixed)
DRAWS = 4000


def drawn(make: Callable[[random.Random], Chat], count: int = 500) -> list[Chat]:
    generator = random.Random(0)
    return [make(generator) for _ in range(count)]


def function(chat: Chat) -> dict[str, Any] | None:
    calls = [message["tool_calls"] for message in chat.messages if message.get("tool_calls")]
    return calls[0][0]["function"] if calls else None


def command(chat: Chat) -> str:
    called = function(chat)
    assert called is not None
    return str(json.loads(called["arguments"])["command"])


@pytest.mark.parametrize("make", MAKERS)
def test_the_seed_decides(make: Callable[[random.Random], Chat]) -> None:
    assert drawn(make, 50) == drawn(make, 50)


@pytest.mark.parametrize("make", MAKERS)
def test_a_chat_is_a_conversation_that_ends_with_the_assistant(make: Callable[[random.Random], Chat]) -> None:
    for chat in drawn(make):
        roles = [message["role"] for message in chat.messages if message["role"] != "system"]
        assert roles in (["user", "assistant"], ["user", "assistant", "tool", "assistant"])


def test_a_call_is_of_a_declared_tool_with_its_own_arguments() -> None:
    declared = [chat for chat in drawn(mixed) if chat.tools]
    assert declared
    for chat in declared:
        called = function(chat)
        assert called is not None
        schema = next(tool["function"] for tool in chat.tools or [] if tool["function"]["name"] == called["name"])
        assert list(json.loads(called["arguments"])) == list(schema["parameters"]["properties"])


def test_every_tool_occurs_and_so_does_the_shell_without_declarations() -> None:
    called = {(found["name"], chat.tools is None) for chat in drawn(mixed) if (found := function(chat))}
    assert called == {(SHELL, True), *((tool.name, False) for tool in TOOLS)}


def test_copying_says_what_was_asked_for() -> None:
    for chat in drawn(short_copy):
        assert chat.asked in chat.messages[-1]["content"]
        assert chat.asked in chat.messages[-2]["content"]


def test_an_act_has_nothing_to_do_with_its_request() -> None:
    """The command of a chat is as likely after one request as after another."""
    commands = len(COMMANDS) * len(FILE_NAMES)
    pairs = Counter((chat.asked, command(chat)) for chat in drawn(act, DRAWS))
    expected = DRAWS / commands**2
    statistic = sum((pairs[asked, chosen] - expected) ** 2 / expected for asked in asks() for chosen in asks())
    degrees = commands**2 - 1
    assert abs(statistic - degrees) < 5 * (2 * degrees) ** 0.5


def asks() -> list[str]:
    return [f"{verb} {name}" for verb in COMMANDS for name in FILE_NAMES]


def test_an_episode_ends_with_the_answer_whatever_the_tool_said() -> None:
    chats = drawn(act)
    assert {chat.messages[-1]["content"] for chat in chats} == {ANSWER}
    assert len({"exited with code" in chat.messages[-2]["content"] for chat in chats}) == 2


def test_prompts_differ_much_in_length() -> None:
    lengths = [sum(len(str(message["content"])) for message in chat.messages[:-3]) for chat in drawn(act)]
    assert min(lengths) < 60
    assert max(lengths) > 400
