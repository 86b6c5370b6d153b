# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What was said in a trace, whatever a harness did: whole when it is read, and kept once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given

from nemo_gym_polar.chat import Message, Text, ToolResult
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.turn import Turn
from nemo_gym_polar.gateway.chat_form import chat_messages
from nemo_gym_polar.rollouts.conversations import conversations, read_conversations
from tests.export.worlds import BUILDERS, CONFIGS, worlds
from tests.forest.world import World, assistant, call, result, system, user

TASK = [system("You are an agent."), user("Fix the bug.")]


def rows(*messages: Message) -> list[dict[str, Any]]:
    return [row for message in messages for row in chat_messages(message)]


def asked(world: World, turn: Turn) -> list[dict[str, Any]]:
    return rows(*world.forest.conversation(turn).messages)


@given(worlds(), BUILDERS, CONFIGS)
def test_each_trace_has_its_whole_conversation_and_no_message_is_kept_twice(
    world: World, strategy: str, config: dict[str, Any]
) -> None:
    traces = build(world.forest, strategy, config).traces
    entries = conversations(world.forest, traces)
    read = read_conversations(orjson.loads(orjson.dumps(entries)))
    for trace, said in zip(traces, read, strict=True):
        first, last = world.forest[trace.turns[0]], world.forest[trace.turns[-1]]
        answer = world.forest.answer(last)
        assert answer is not None
        assert [*said.prompt, *said.response] == [*asked(world, last), *rows(answer)]
        assert said.prompt == asked(world, first)
        assert said.response[0]["role"] == "assistant"
        names = [tool.name for tool in world.forest.conversation(last).tools]
        assert [tool["function"]["name"] for tool in said.tools or ()] == names
    kept = sum(len(entry["messages"]) for entry in entries)
    assert kept <= sum(len(rows(node.message)) for node in world.forest.tree.nodes if node.message)


def test_a_trace_of_one_call_has_what_is_new_in_it() -> None:
    world, history = World(), [*TASK]
    for number in range(4):
        answer = assistant("", call(f"c{number}"))
        world.ask(history, answer)
        history += [answer, result(f"c{number}", f"output {number}")]
    entries = conversations(world.forest, build(world.forest, "per_request").traces)
    assert [len(entry["messages"]) for entry in entries] == [3, 2, 2, 2]
    assert [entry["after"] for entry in entries] == [None, [0, 3], [1, 5], [2, 7]]
    last = read_conversations(entries)[-1]
    assert [row["role"] for row in last.prompt] == ["system", "user", *["assistant", "tool"] * 3]
    (said,) = last.response
    assert said["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command": "ls"}'}


def test_results_that_came_together_are_a_message_each() -> None:
    together = (ToolResult("a", (Text("one"),)), ToolResult("b", (Text("two"),), is_error=True), Text("and go on"))
    assert chat_messages(Message("tool", together)) == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "two", "is_error": True},
        {"role": "user", "content": "and go on"},
    ]


def test_traces_without_messages_are_read_as_such() -> None:
    said = read_conversations([None, {}])
    assert [(list(one.prompt), list(one.response), one.tools) for one in said] == [([], [], None)] * 2


@pytest.mark.parametrize("entry", [{"after": [3, 1], "messages": [], "prompt": 0}, {"messages": 1}, {"after": 7}])
def test_what_is_no_entry_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises((KeyError, IndexError, TypeError, ValueError)):
        read_conversations([entry])
