# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions that real harnesses produce and that other recorders lose tokens on or train wrongly."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from nemo_gym_polar.chat import Image, Message, Text, Tool, ToolResult
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.journal import parse_journal
from nemo_gym_polar.forest.turn import Cause, Edge, Status
from tests.forest.invariants import check_build, check_contexts, sampled
from tests.forest.world import (
    EDIT,
    SHELL,
    Mode,
    Template,
    World,
    assistant,
    call,
    result,
    system,
    user,
)

TASK = [system("You are an agent."), user("Fix the bug.")]


def checked(world: World):
    check_contexts(world)
    check_build(world, build(world.forest, "per_request"))
    merged = build(world.forest)
    check_build(world, merged)
    return merged


def test_claude_code_renames_a_tool_in_the_echo() -> None:
    world = World()
    world.ask(TASK, assistant("", call("c1", '{"prompt": "look"}', "Task")))
    echo = assistant("", call("c1", '{"prompt": "look"}', "Agent"))
    turn = world.ask([*TASK, echo, result("c1")], assistant("", call("c2")))
    assert (turn.edge, turn.drift) == (Edge.CONTINUE, Cause.ARGUMENTS_CHANGED)
    again = world.ask([*TASK, echo, result("c1"), assistant("", call("c2")), result("c2")], assistant("done"))
    assert again.edge is Edge.CONTINUE
    assert [trace.turns for trace in checked(world).traces] == [(0, 1, 2)]


def test_opencode_renames_a_broken_call_to_invalid() -> None:
    world = World()
    world.template.compact_arguments = False
    world.ask(TASK, assistant("", call("c1", '{"command": ')))
    echo = assistant("", call("c1", '{"tool": "bash", "error": "bad JSON"}', "invalid"))
    turn = world.ask([*TASK, echo, result("c1", "invalid input")], assistant("sorry"))
    assert (turn.edge, turn.drift) == (Edge.CONTINUE, Cause.ARGUMENTS_CHANGED)
    assert len(checked(world).traces) == 1


def test_opencode_asks_for_a_title_first() -> None:
    world = World()
    world.ask([system("You write titles."), user("Fix the bug.")], assistant("Bug fix"), tools=())
    main = assistant("", call("c1"))
    world.ask(TASK, main)
    world.ask([*TASK, main, result("c1")], assistant("done"))
    assert [turn.edge for turn in world.forest.turns] == [Edge.SIDE_CALL, Edge.ROOT, Edge.CONTINUE]
    merged = checked(world)
    assert [(trace.kind, trace.turns) for trace in merged.traces] == [("main", (1, 2))]
    assert merged.dropped == {"side_call": sampled(world.calls, 0)}
    assert build(world.forest, config={"main_chain": True}).traces[0].turns == (1, 2)


def test_a_title_call_while_the_task_runs() -> None:
    world = World()
    match = world.match(TASK)
    title = world.match([system("You write titles."), user("Fix the bug.")], ())
    world.answer(match, assistant("", call("c1")))
    assert world.answer(title, assistant("Bug fix")).edge in (Edge.ROOT, Edge.SIDE_CALL)
    world.ask([*TASK, assistant("", call("c1")), result("c1")], assistant("done"))
    later = world.ask([system("You write titles."), user("Another.")], assistant("Bug fix"), tools=())
    assert later.edge is Edge.SIDE_CALL
    assert "main" in {trace.kind for trace in checked(world).traces}


def test_a_sub_agent_with_the_same_system_prompt() -> None:
    world = World()
    spawn = assistant("", call("c1", '{"prompt": "Search the tests"}', "task"))
    world.ask(TASK, spawn)
    turn = world.ask([TASK[0], user("Search the tests")], assistant("nothing found there"))
    world.ask([*TASK, spawn, result("c1", "nothing found there")], assistant("done"))
    assert (turn.edge, turn.parent) == (Edge.SUB_AGENT, 0)
    merged = checked(world)
    assert [(trace.kind, trace.turns) for trace in merged.traces] == [("main", (0, 2)), ("sub_agent", (1,))]
    assert merged.traces[1].shared_prefix > len(said_system(world))


def said_system(world: World) -> list[int]:
    return world.template.message(TASK[0])


@pytest.mark.parametrize("header", ["x-openai-subagent", "x-claude-code-agent-id", "x-parent-session-id"])
def test_two_interleaved_sub_agents_told_apart_by_content_and_header(header: str) -> None:
    world = World()
    spawn = assistant("", call("c1", "{}", "task"), call("c2", "{}", "task"))
    world.ask(TASK, spawn)
    histories: list[list[Message]] = [[*TASK[:1], user(f"Part {which}")] for which in "ab"]
    for step in range(3):
        for which, history in enumerate(histories):
            answer = assistant("", call(f"{which}-{step}"))
            world.ask(history, answer, hints={header: "1"})
            history += [answer, result(f"{which}-{step}")]
    merged = checked(world)
    assert [(trace.kind, trace.turns) for trace in merged.traces] == [
        ("main", (0,)),
        ("sub_agent", (1, 3, 5)),
        ("sub_agent", (2, 4, 6)),
    ]


def test_thinking_stripped_at_every_user_message_costs_no_repeated_storage() -> None:
    world = World("chat", Template(strip_thinking=True))
    history = list(TASK)
    for at in range(6):
        answer = assistant(f"answer {at}", reasoning=f"thought number {at}")
        world.ask(history, answer)
        history += [answer, user(f"and {at}?")]
    merged = checked(world)
    assert len(merged.traces) == 6
    assert {turn.cause for turn in world.forest.turns[1:]} == {Cause.THINKING_STRIPPED}
    stored = sum(len(turn.delta) + len(turn.sampled) for turn in world.forest.turns)
    assert stored < 2 * len(world.forest.tokens(5))


def test_a_retry_while_the_first_generation_still_runs() -> None:
    world = World()
    first, second = world.match(TASK), world.match(TASK)
    world.answer(second, assistant("", call("c2")))
    world.answer(first, assistant("", call("c1")))
    assert [turn.edge for turn in world.forest.turns] == [Edge.ROOT, Edge.RETRY]
    world.ask([*TASK, assistant("", call("c2")), result("c2")], assistant("done"))
    assert [turn.status for turn in world.forest.turns] == [Status.KEPT, Status.UNSEEN, Status.KEPT]
    assert [trace.turns for trace in checked(world).traces] == [(0, 2)]


def test_tools_are_dropped_in_the_compaction_call() -> None:
    world = World("chat")
    main = assistant("", call("c1", '{"command":"ls"}'))
    world.ask(TASK, main)
    summary = "The agent listed the files and found a bug in the parser."
    asked = [*TASK, main, result("c1"), user("You are performing a checkpoint compaction.")]
    compaction = world.ask(asked, assistant(summary), tools=())
    assert (compaction.edge, compaction.cause) == (Edge.SIDE_CALL, Cause.TOOLS_CHANGED)
    turn = world.ask([*TASK, user(summary)], assistant("done"))
    assert (turn.edge, turn.parent) == (Edge.COMPACTION, 1)
    assert compaction.edge is Edge.COMPACTION
    merged = checked(world)
    assert [(trace.kind, trace.turns) for trace in merged.traces] == [
        ("main", (0,)),
        ("compaction", (1,)),
        ("compaction", (2,)),
    ]
    assert not merged.dropped


@pytest.mark.parametrize("mode", ["tokens", "chat"])
def test_an_image_in_turn_three(mode: Mode) -> None:
    world = World(mode)
    history = list(TASK)
    for at in range(4):
        answer = assistant("", call(f"c{at}", '{"command":"ls"}'))
        world.ask(history, answer)
        shown = ToolResult(f"c{at}", (Text("see"), Image("data:image/png;base64,AAAA")))
        history += [answer, Message("tool", (shown,)) if at == 2 else result(f"c{at}")]
    (trace,) = checked(world).traces
    assert trace.images == (sha256(b"data:image/png;base64,AAAA").hexdigest(),)


def test_tools_that_change_mid_session_begin_a_chain() -> None:
    world = World("chat")
    answer = assistant("", call("c1", '{"command":"ls"}'))
    world.ask(TASK, answer)
    turn = world.ask([*TASK, answer, result("c1")], assistant("done"), tools=(EDIT, SHELL))
    assert (turn.edge, turn.parent, turn.cause) == (Edge.ROOT, 0, Cause.TOOLS_CHANGED)
    assert world.forest[0].continued
    assert [trace.kind for trace in checked(world).traces] == ["main", "main"]


def test_masked_tool_output_is_a_rewritten_history() -> None:
    world = World("chat")
    answers = [assistant("", call(f"c{at}", '{"command":"ls"}')) for at in range(2)]
    world.ask(TASK, answers[0])
    world.ask([*TASK, answers[0], result("c0", "long output")], answers[1])
    masked = [*TASK, answers[0], result("c0", "<tool_output_masked>"), answers[1], result("c1")]
    turn = world.ask(masked, assistant("done"))
    assert (turn.edge, turn.parent, turn.cause) == (Edge.ROOT, 1, Cause.HISTORY_REWRITTEN)
    assert len(checked(world).traces) == 2


def test_equal_tools_in_another_key_order_are_the_same_tools() -> None:
    world = World()
    answer = assistant("hello")
    world.ask(TASK, answer)
    shuffled: Tool = replace(SHELL, parameters=dict(reversed(list(SHELL.parameters.items()))))
    assert world.ask([*TASK, answer, user("more")], assistant("done"), tools=(shuffled,)).edge is Edge.CONTINUE


def test_killed_between_generation_and_reply() -> None:
    """The turn was durable, the harness never saw it: after the restart it asks again, and that answer counts."""
    before = World()
    before.ask(TASK, assistant("", call("lost")))
    world = World(forest=parse_journal(before.journal(), "journal").forest, calls=before.calls)
    retry = world.ask(TASK, assistant("", call("c1")))
    world.ask([*TASK, assistant("", call("c1")), result("c1")], assistant("done"))
    assert (retry.edge, retry.parent, len(retry.delta)) == (Edge.RETRY, 0, 0)
    merged = checked(world)
    assert [trace.turns for trace in merged.traces] == [(1, 2)]
    assert merged.dropped == {"unseen": sampled(world.calls, 0)}
