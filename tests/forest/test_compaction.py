# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Histories that a harness replaced by a summary, each in the shape that was seen on the wire."""

from __future__ import annotations

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.turn import Edge
from tests.forest.invariants import check_build, check_contexts
from tests.forest.world import World, assistant, call, result, system, user

TASK = [system("You are an agent."), user("Fix the bug.")]
SUMMARY = "The agent listed the files and found a bug in the parser."


def test_opencode_flattens_the_history_and_answers_itself_with_the_summary() -> None:
    world = World()
    world.ask(TASK, assistant("", call("c1")))
    flat = [system("You sum up."), user("[User]: Fix the bug.\n[Assistant tool call]: bash")]
    summary = world.ask(flat, assistant(SUMMARY), tools=())
    assert summary.edge is Edge.SIDE_CALL
    again = [TASK[0], user("What did we do so far?"), assistant(SUMMARY), user("Continue.")]
    turn = world.ask(again, assistant("", call("c2")))
    assert (turn.edge, turn.parent) == (Edge.COMPACTION, summary.index)
    assert summary.edge is Edge.COMPACTION
    after = world.ask([*again, assistant("", call("c2")), result("c2")], assistant("done"))
    assert (after.edge, after.parent) == (Edge.CONTINUE, turn.index)
    owned = checked(world)
    assert owned == [("main", (0,)), ("compaction", (1,)), ("compaction", (2, 3))]


def test_qwen_code_cuts_the_analysis_off_and_keeps_the_last_call() -> None:
    world = World()
    world.ask(TASK, assistant("", call("c1")))
    history = [*TASK, assistant("", call("c1")), result("c1")]
    notes, snapshot = "First it looked around, then it looked closer.", f"<state_snapshot>{SUMMARY}</state_snapshot>"
    answer = f"<analysis>{notes}</analysis>\n{snapshot}"
    summary = world.ask([system("You sum up."), *history[1:], user("Produce it.")], assistant(answer), tools=())
    kept = [assistant("Got it.", call("c1")), result("c1")]
    again = [TASK[0], user(f"{snapshot}\n\nResume."), *kept]
    turn = world.ask(again, assistant("", call("c2")))
    assert (turn.edge, turn.parent) == (Edge.COMPACTION, summary.index)
    assert summary.edge is Edge.COMPACTION
    after = world.ask([*again, assistant("", call("c2")), result("c2")], assistant("done"))
    assert (after.edge, after.parent) == (Edge.CONTINUE, turn.index)
    owned = checked(world)
    assert owned == [("main", (0,)), ("compaction", (1,)), ("compaction", (2, 3))]


def test_qwen_code_sums_up_a_second_time() -> None:
    """The history that it sums up then is not quite the one that it goes on with."""
    world = World()
    world.ask(TASK, assistant("", call("c1")))
    first = world.ask([*TASK, assistant("", call("c1")), result("c1"), user("Sum up.")], assistant(SUMMARY), tools=())
    begun = [TASK[0], user(SUMMARY), assistant("Got it.", call("c1")), result("c1")]
    second = world.ask(begun, assistant("", call("c2")))
    history = [user(f"Skills. {SUMMARY}"), *begun[2:], assistant("", call("c2")), result("c2"), user("Sum up.")]
    more = f"{SUMMARY} Then it mended the parser."
    third = world.ask([system("You sum up."), *history], assistant(more), tools=())
    again = [TASK[0], user(more), assistant("Got it.", call("c2")), result("c2")]
    last = world.ask(again, assistant("done"))
    turns = (first, second, third, last)
    assert [turn.edge for turn in turns] == [Edge.COMPACTION] * 4
    assert [turn.parent for turn in turns] == [0, first.index, second.index, third.index]
    assert checked(world) == [("main", (0,)), *(("compaction", (turn.index,)) for turn in turns)]


def test_gemini_cli_has_its_summary_looked_over() -> None:
    """The second call keeps the answer of the first and leaves out what that was asked."""
    world = World()
    world.ask(TASK, assistant("done"))
    history = [system("You sum up."), TASK[1], assistant("done")]
    draft, final = (assistant(f"<state_snapshot>{SUMMARY} {more}</state_snapshot>") for more in ("", "It is done."))
    first = world.ask([*history, user("Sum up.")], draft, tools=())
    second = world.ask([*history, draft, user("Is that all?")], final, tools=())
    assert (first.edge, second.edge) == (Edge.SIDE_CALL, Edge.ROOT)
    turn = world.ask([TASK[0], user(f"{final.text}"), assistant("Got it."), user("And more.")], assistant("done, too"))
    assert (turn.edge, turn.parent) == (Edge.COMPACTION, second.index)
    assert first.edge is Edge.COMPACTION
    assert checked(world) == [("main", (0,)), *(("compaction", (one.index,)) for one in (first, second, turn))]


def test_a_title_that_nobody_repeats_stays_beside_the_task() -> None:
    world = World()
    world.ask(TASK, assistant("", call("c1")))
    title = world.ask([system("Name it."), user("Fix the bug.")], assistant(SUMMARY), tools=())
    world.ask([*TASK, assistant("", call("c1")), result("c1")], assistant("done"))
    assert title.edge is Edge.SIDE_CALL


def checked(world: World) -> list[tuple[str, tuple[int, ...]]]:
    """Kind and turns of every trace; all that was sampled is in one of them."""
    check_contexts(world)
    built = build(world.forest)
    check_build(world, built)
    assert not built.dropped
    return [(trace.kind, trace.turns) for trace in built.traces]
