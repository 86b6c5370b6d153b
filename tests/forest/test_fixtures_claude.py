# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What Claude Code does to a conversation, as it was seen on the wire."""

from __future__ import annotations

from nemo_gym_polar.chat import Message
from nemo_gym_polar.forest.builders import Build, build
from nemo_gym_polar.forest.turn import Cause, Edge, Turn
from tests.forest.invariants import check_build, check_contexts
from tests.forest.world import World, assistant, call, result, system, user

TASK = [system("You are an agent."), user("Create a file.")]
ORDER = user("CRITICAL: Respond with TEXT ONLY. Do NOT call any tools. Summarise the conversation.")
SUMMARY = "1. The user wants a file.\n\n\n2. Only the files were listed so far."
QUOTED = (
    "This session is being continued.\n\nSummary:\n1. The user wants a file.\n\n2. Only the files were listed so far."
)


def checked(world: World) -> Build:
    check_contexts(world)
    built = build(world.forest)
    check_build(world, built)
    return built


def steps(count: int) -> tuple[World, list[Message]]:
    """A session in which `count` commands were called; its history after the last result."""
    world, history = World(), list(TASK)
    for at in range(count):
        answer = assistant("", call(f"c{at}", '{"command":"ls"}'))
        world.ask(history, answer)
        history += [answer, result(f"c{at}", f"listing {at}")]
    return world, history


def summarised(world: World, history: list[Message]) -> Turn:
    return world.ask([*history, ORDER], assistant(f"<analysis>Hm.</analysis>\n<summary>\n{SUMMARY}\n</summary>"))


def test_a_summary_of_all_but_the_last_step_which_stays_beside_it() -> None:
    world, history = steps(2)
    summary = summarised(world, history[:-2])
    assert (summary.edge, summary.parent) == (Edge.CONTINUE, 0)
    begun = world.ask([*TASK[:1], user(QUOTED), *history[-2:]], assistant("", call("c9")))
    assert (begun.edge, begun.parent, begun.cause) == (Edge.COMPACTION, summary.index, None)
    assert summary.edge is Edge.COMPACTION
    again = world.ask(
        [*TASK[:1], user(QUOTED), *history[-2:], assistant("", call("c9")), result("c9")], assistant("Ok.")
    )
    assert (again.edge, again.parent) == (Edge.CONTINUE, begun.index)
    built = checked(world)
    assert [(trace.kind, trace.turns) for trace in built.traces] == [
        ("main", (0, 1)),
        ("compaction", (2,)),
        ("compaction", (3, 4)),
    ]
    assert not built.dropped


def test_a_summary_of_everything_is_the_last_step() -> None:
    world, history = steps(2)
    summary = summarised(world, history)
    begun = world.ask([*TASK[:1], user(QUOTED)], assistant("Done."))
    assert (begun.edge, begun.parent) == (Edge.COMPACTION, summary.index)
    assert [(trace.kind, trace.turns) for trace in checked(world).traces] == [("main", (0, 1, 2)), ("compaction", (3,))]


def test_a_rewritten_history_that_quotes_nothing_stays_one() -> None:
    world, history = steps(2)
    summarised(world, history[:-2])
    turn = world.ask([*TASK[:1], user("Something else."), *history[-2:]], assistant("Done."))
    assert (turn.edge, turn.parent, turn.cause) == (Edge.ROOT, 1, Cause.HISTORY_REWRITTEN)


def test_a_sub_agents_report_is_no_summary_of_the_task() -> None:
    world, history = steps(2)
    report = "The sub-agent read all files and found nothing of note."
    sub_agent = world.ask([*TASK[:1], user("Look at the files.")], assistant(report))
    told = user(f"Notification: {report}")
    turn = world.ask([*TASK[:1], user("Fix it, please."), *history[2:], told], assistant("Done."))
    assert (turn.edge, turn.cause) == (Edge.ROOT, Cause.HISTORY_REWRITTEN)
    assert sub_agent.edge is not Edge.COMPACTION


def test_a_step_whose_answer_is_quoted_later_stays_a_step() -> None:
    world, history = steps(1)
    said = assistant("The files were listed; there is nothing else to do here.")
    step = world.ask(history, said)
    turn = world.ask([*TASK[:1], user(f"Before, you said: {said.text}")], assistant("Yes."))
    assert turn.edge is Edge.COMPACTION
    assert step.edge is Edge.CONTINUE
