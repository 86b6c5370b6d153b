# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import datasets
import orjson
import pytest
from hypothesis import given, settings

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Text, ToolResult
from nemo_gym_polar.export.lines import write_lines
from nemo_gym_polar.export.sft import NotTextError, conversations, encode_conversation
from nemo_gym_polar.forest.turn import Flag, Status
from tests.export.worlds import worlds
from tests.forest.world import EDIT, SHELL, World, assistant, call, result, system, user

KINDS = ("main", "sub_agent", "compaction", "side_call")
TASK = [system("Be brief."), user("List the files.")]


def rows(world: World, *kinds: Any) -> list[dict[str, Any]]:
    learnt: set[int] = set()
    store = world.forest
    return [encode_conversation(store, turn, learnt) for turn in conversations(store, kinds or ("main",))]


def tool_session() -> World:
    world = World()
    asked = assistant("", call("c1"), reasoning="Look first.")
    world.ask(TASK, asked)
    world.ask([*TASK, asked, result("c1", "a.txt")], assistant("One file."))
    return world


def test_a_session_is_one_conversation_with_its_tools() -> None:
    (row,) = rows(tool_session())
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    asked, answered = row["messages"][2:4]
    assert asked["reasoning_content"] == "Look first."
    assert asked["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command": "ls"}'}
    assert (answered["content"], answered["tool_call_id"]) == ("a.txt", asked["tool_calls"][0]["id"])
    assert [message["trained"] for message in row["messages"]] == [False, False, True, False, True]
    (tool,) = orjson.loads(row["tools"])
    assert tool["function"]["parameters"] == SHELL.parameters


def test_answers_that_conversations_share_are_learnt_once() -> None:
    world = World()
    world.ask(TASK, assistant("Which?"))
    for question in ("one", "two"):
        world.ask([*TASK, assistant("Which?"), user(question)], assistant(f"Done {question}."))
    said = [[m["content"] for m in row["messages"] if m["trained"]] for row in rows(world)]
    assert said == [["Which?", "Done one."], ["Done two."]]


def test_what_the_policy_did_not_say_is_not_learnt() -> None:
    world = World()
    world.ask([*TASK, assistant("An example."), user("Go on.")], assistant("Mine."))
    world.ask([user("Another")], assistant("A helper's."), flags=frozenset({Flag.NOT_POLICY}))
    world.ask([user("A third")], assistant("Half of"), status=Status.PARTIAL)
    (row,) = rows(world, *KINDS)
    assert [m["content"] for m in row["messages"] if m["trained"]] == ["Mine."]


@settings(deadline=None, max_examples=60)
@given(worlds())
def test_every_kept_answer_is_learnt_exactly_once(world: World) -> None:
    store = world.forest
    answers = [turn.answer for turn in store.turns if turn.status is Status.KEPT and Flag.NOT_POLICY not in turn.flags]
    trained = [message for row in rows(world, *KINDS) for message in row["messages"] if message["trained"]]
    assert len(trained) == len(set(answers))
    texts = sorted(store.tree.nodes[answer].message.text for answer in set(answers))
    assert sorted(message["content"] for message in trained) == texts
    assert all(message["role"] == "assistant" for message in trained)


@pytest.mark.parametrize(
    ("part", "cause"),
    [
        pytest.param(Image("data:image/png;base64,AA=="), "images", id="image"),
        pytest.param(ToolResult("c", (Image("data:image/png;base64,AA=="),)), "images", id="image in a result"),
        pytest.param(Opaque("messages", {"type": "citation"}), "messages blocks", id="opaque"),
    ],
)
def test_what_is_not_text_is_named(part: Part, cause: str) -> None:
    world = World()
    turn = world.ask([*TASK, Message("user", (Text("see"), part))], assistant("Seen."))
    with pytest.raises(NotTextError, match=f"turn 0 holds {cause}"):
        encode_conversation(world.forest, turn, set())


def test_datasets_reads_tools_of_any_shape(tmp_path: Path) -> None:
    odd = [SHELL, EDIT]
    path = tmp_path / "sft.jsonl"
    worlds = [tool_session()]
    for tool, enum in zip(odd, ([1, "two", None], {"a": [1]}), strict=True):
        world = World()
        parameters = {"type": ["object", "null"], "enum": enum, "default": enum}
        changed = type(tool)(tool.name, tool.description, parameters)
        world.ask(TASK, assistant("Done."), tools=(changed,))
        worlds.append(world)
    written = list(itertools.chain.from_iterable(map(rows, worlds)))
    assert write_lines(path, written) == 3
    read = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert read.to_list() == written
