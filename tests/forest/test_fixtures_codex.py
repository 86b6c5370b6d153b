# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Codex's requests as they were seen on the wire: windows of a thread, threads of agents."""

from __future__ import annotations

import pytest

from nemo_gym_polar.chat import Message
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.turn import Edge
from tests.forest.invariants import check_build, check_contexts
from tests.forest.world import World, assistant, call, result, system, user

TASK = [system("You are a coding agent."), user("<environment_context/>"), user("Create hello.txt.")]
STEP = [assistant("", call("c1")), result("c1")]
CHECKPOINT = user("You are performing a CONTEXT CHECKPOINT COMPACTION.")


def window(number: int, thread: str = "t1") -> dict[str, str]:
    return {"thread-id": thread, "x-codex-window-id": f"{thread}:{number}"}


def agent(thread: str) -> dict[str, str]:
    parent = {"x-codex-parent-thread-id": "t1", "x-openai-subagent": "collab_spawn"}
    return {**window(0, thread), **parent}


@pytest.mark.parametrize("summary", [assistant("Ok."), assistant(), assistant("", call("c2"))])
def test_a_new_window_goes_on_from_its_summary_however_short(summary: Message) -> None:
    world = World()
    world.ask(TASK, STEP[0], hints=window(0))
    asked = world.ask([*TASK, *STEP, CHECKPOINT], summary, tools=(), hints=window(0))
    again = [*TASK, user(f"Another model began. Its summary:\n{summary.text or '(no summary available)'}")]
    turn = world.ask(again, assistant("", call("c3")), hints=window(1))
    after = world.ask([*again, assistant("", call("c3")), result("c3")], assistant("Done."), hints=window(1))
    assert (asked.edge, asked.parent) == (Edge.COMPACTION, 0)
    assert (turn.edge, turn.parent) == (Edge.COMPACTION, asked.index)
    assert (after.edge, after.parent) == (Edge.CONTINUE, turn.index)
    check_contexts(world)
    built = build(world.forest)
    check_build(world, built)
    assert [(trace.kind, trace.turns) for trace in built.traces] == [
        ("main", (0,)),
        ("compaction", (1,)),
        ("compaction", (2, 3)),
    ]


def test_a_first_window_is_none_of_that() -> None:
    world = World()
    first = world.ask(TASK, STEP[0], hints={**window(0), "x-codex-window-id": "strange"})
    again = world.ask(TASK, STEP[0], hints=window(0))
    assert (first.edge, again.edge) == (Edge.ROOT, Edge.RETRY)


def test_an_agent_has_its_own_thread() -> None:
    world = World()
    spawn = assistant("", call("c1", '{"message": "List the files."}', name="multi_agent_v1__spawn_agent"))
    world.ask(TASK, spawn, hints=window(0))
    begun = world.ask([*TASK[:2], user("List the files.")], assistant("", call("c2")), hints=agent("t2"))
    waiting = world.ask([*TASK, spawn, result("c1")], assistant("", call("c3")), hints=window(0))
    ended = world.ask(
        [*TASK[:2], user("List the files."), assistant("", call("c2")), result("c2")], assistant("a"), hints=agent("t2")
    )
    assert (begun.edge, begun.parent) == (Edge.SUB_AGENT, 0)
    assert (waiting.edge, waiting.parent) == (Edge.CONTINUE, 0)
    assert (ended.edge, ended.parent) == (Edge.CONTINUE, begun.index)
