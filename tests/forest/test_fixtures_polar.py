# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Fifteen sessions that break builders which merge by prompt prefix alone, each with its expected forest and traces."""

from __future__ import annotations

import pytest

from nemo_gym_polar.chat import Message, Text
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.turn import Cause, Edge, Flag, Status
from nemo_gym_polar.tokens import VersionSpan
from tests.forest.invariants import check_build, check_contexts, sampled
from tests.forest.world import (
    CALL,
    END,
    UNCALL,
    Mode,
    Template,
    World,
    assistant,
    call,
    compact,
    encode,
    letters,
    result,
    said,
    system,
    user,
    without_thinking,
)

TASK = [system("You are an agent."), user("Fix the bug.")]


def checked(world: World, **config: object):
    """The traces of both builders, after all invariants; those of prefix merging are returned."""
    check_contexts(world)
    check_build(world, build(world.forest, "per_request", config))
    merged = build(world.forest, "prefix_merging", config)
    check_build(world, merged)
    return merged


def edges(world: World) -> list[tuple[str, int | None]]:
    return [(turn.edge.value, turn.parent) for turn in world.forest.turns]


@pytest.mark.parametrize(("mode", "traces"), [("tokens", 1), ("chat", 2)])
def test_01_tool_json_sampled_with_odd_spacing(mode: Mode, traces: int) -> None:
    world = World(mode)
    odd = assistant("", call("c1", '{ "command" :  "ls" }'))
    world.ask(TASK, odd)
    turn = world.ask([*TASK, compact(odd), result("c1")], assistant("done"))
    assert turn.cause is (None if mode == "tokens" else Cause.ARGUMENTS_CHANGED)
    merged = checked(world)
    assert len(merged.traces) == traces
    assert not merged.dropped


@pytest.mark.parametrize(("mode", "traces"), [("tokens", 1), ("chat", 2)])
def test_02_sampled_text_is_another_split_of_the_same_string(mode: Mode, traces: int) -> None:
    world = World(mode)
    answer = assistant("hello there")
    world.ask(TASK, answer, sampled=letters("hello there"))
    turn = world.ask([*TASK, answer, user("go on")], assistant("done"))
    assert turn.cause is (None if mode == "tokens" else Cause.TOKEN_BOUNDARY)
    assert len(checked(world).traces) == traces


@pytest.mark.parametrize(("mode", "traces"), [("tokens", 1), ("chat", 2)])
def test_03_thinking_is_stripped_from_the_history(mode: Mode, traces: int) -> None:
    world = World(mode, Template(strip_thinking=True))
    answer = assistant("hello", reasoning="the user greets")
    world.ask(TASK, answer)
    turn = world.ask([*TASK, answer, user("go on")], assistant("done"))
    assert turn.cause is (None if mode == "tokens" else Cause.THINKING_STRIPPED)
    merged = checked(world)
    assert len(merged.traces) == traces
    if mode == "chat":  # the second trace says where it branches off: before the thinking
        assert merged.traces[1].parent == 0
        assert merged.traces[1].shared_prefix == len(world.calls[0].context)


def test_03_thinking_dropped_by_the_harness_itself() -> None:
    world = World("tokens")
    answer = assistant("hello", reasoning="the user greets")
    world.ask(TASK, answer)
    turn = world.ask([*TASK, without_thinking(answer), user("go on")], assistant("done"))
    assert (turn.edge, turn.drift) == (Edge.CONTINUE, Cause.THINKING_STRIPPED)
    assert len(checked(world).traces) == 1


def test_04_a_retry_is_a_sibling_and_the_history_decides() -> None:
    world = World()
    world.ask(TASK, assistant("", call("c1")))
    world.ask(TASK, assistant("", call("c2")))
    assert [turn.status for turn in world.forest.turns] == [Status.UNSEEN, Status.KEPT]
    world.ask([*TASK, assistant("", call("c1")), result("c1")], assistant("done"))
    assert edges(world) == [("root", None), ("retry", 0), ("continue", 0)]
    assert [turn.status for turn in world.forest.turns] == [Status.KEPT, Status.UNSEEN, Status.KEPT]
    merged = checked(world)
    assert [trace.turns for trace in merged.traces] == [(0, 2)]
    assert merged.dropped == {"unseen": sampled(world.calls, 1)}


def test_04_the_second_answer_is_continued() -> None:
    world = World()
    world.ask(TASK, assistant("", call("c1")))
    world.ask(TASK, assistant("", call("c2")))
    world.ask([*TASK, assistant("", call("c2")), result("c2")], assistant("done"))
    assert edges(world) == [("root", None), ("retry", 0), ("continue", 1)]
    assert len(world.forest[1].delta) == 0
    merged = checked(world)
    assert [trace.turns for trace in merged.traces] == [(1, 2)]
    assert build(world.forest, config={"main_chain": True}).traces[0].turns == (1, 2)


def test_05_a_title_call_extends_the_prompt_without_the_answer() -> None:
    world = World()
    main = assistant("", call("c1"))
    world.ask(TASK, main)
    title = world.ask([*TASK, user("Give this chat a title.")], assistant("A bug"))
    assert (title.edge, title.cause) == (Edge.ROOT, Cause.ANSWER_DROPPED)
    world.ask([*TASK, main, result("c1")], assistant("done"))
    assert title.edge is Edge.SIDE_CALL
    merged = checked(world)
    assert [trace.turns for trace in merged.traces] == [(0, 2)]
    assert merged.dropped == {"side_call": sampled(world.calls, 1)}


def test_05_a_title_call_after_the_task_went_on() -> None:
    world = World()
    main = assistant("", call("c1"))
    world.ask(TASK, main)
    world.ask([*TASK, main, result("c1")], assistant("done"))
    assert world.ask([*TASK, user("A title, please.")], assistant("A bug")).edge is Edge.SIDE_CALL


def test_06_two_parallel_sub_agents_finish_in_reverse_order() -> None:
    world = World()
    spawn = assistant(
        "",
        call("c1", '{"prompt": "Look into the parser"}', "task"),
        call("c2", '{"prompt": "Look into the printer"}', "task"),
    )
    world.ask(TASK, spawn)
    helper = system("You are a helper.")
    first = [helper, user("Look into the parser")]
    second = [helper, user("Look into the printer")]
    matches = [world.match(first), world.match(second)]
    world.answer(matches[1], assistant("", call("c3")))
    world.answer(matches[0], assistant("", call("c4")))
    world.ask([*second, assistant("", call("c3")), result("c3")], assistant("printer is fine"))
    world.ask([*first, assistant("", call("c4")), result("c4")], assistant("parser is broken"))
    world.ask([*TASK, spawn, result("c1"), result("c2")], assistant("done"))
    assert edges(world)[1:] == [
        ("sub_agent", 0),
        ("sub_agent", 0),
        ("continue", 1),
        ("continue", 2),
        ("continue", 0),
    ]
    merged = checked(world)
    assert [(trace.kind, trace.turns, trace.parent) for trace in merged.traces] == [
        ("main", (0, 5), None),
        ("sub_agent", (1, 3), 0),
        ("sub_agent", (2, 4), 0),
    ]


def test_07_compaction_begins_a_chain_of_its_own() -> None:
    world = World()
    main = assistant("", call("c1"))
    world.ask(TASK, main)
    summary = "The bug is in the parser; the fix is half written."
    world.ask([*TASK, main, result("c1"), user("Summarise the work so far.")], assistant(summary))
    compacted = [*TASK, user(f"What was done so far: {summary}")]
    turn = world.ask(compacted, assistant("", call("c2")))
    world.ask([*compacted, assistant("", call("c2")), result("c2")], assistant("done"))
    assert (turn.edge, turn.parent) == (Edge.COMPACTION, 1)
    merged = checked(world)
    assert [(trace.kind, trace.turns, trace.parent) for trace in merged.traces] == [
        ("main", (0, 1), None),
        ("compaction", (2, 3), 0),
    ]
    assert merged.traces[1].shared_prefix > 0


@pytest.mark.parametrize("mode", ["tokens", "chat"])
def test_08_an_answer_cut_by_max_tokens_is_continued(mode: Mode) -> None:
    world = World(mode)
    cut = assistant("first half of")
    world.ask(TASK, cut, end=False, finish="length")
    world.ask([*TASK, cut, user("continue")], assistant("the answer"))
    assert edges(world) == [("root", None), ("continue", 0)]
    merged = checked(world)
    assert len(merged.traces) == 1
    assert (
        merged.traces[0].token_ids.tolist().count(END)
        == len(world.calls[1].context) - len([token for token in world.calls[1].context if token != END]) + 1
    )


@pytest.mark.parametrize("mode", ["tokens", "chat"])
def test_09_the_backend_trims_the_stop_token(mode: Mode) -> None:
    world = World(mode)
    world.ask(TASK, assistant("hi"), end=False)
    world.ask([*TASK, assistant("hi"), user("more")], assistant("ho"), end=False)
    merged = checked(world)
    assert len(merged.traces) == 1
    first = len(world.calls[0].context) + len(world.calls[0].sampled)
    assert merged.traces[0].token_ids[first] == END
    assert not merged.traces[0].loss_mask[first]


@pytest.mark.parametrize("mode", ["tokens", "chat"])
def test_10_a_call_without_ids_in_the_middle(mode: Mode) -> None:
    world = World(mode)
    first, silent = assistant("", call("c1")), assistant("", call("c2"))
    world.ask(TASK, compact(first), sampled=said(compact(first)))
    world.fail(world.match([*TASK, compact(first), result("c1")]), silent)
    history = [*TASK, compact(first), result("c1"), silent, result("c2")]
    turn = world.ask(history, assistant("", call("c3")))
    world.ask([*history, assistant("", call("c3")), result("c3")], assistant("done"))
    assert world.forest[1].status is Status.FAILED
    merged = checked(world)
    if mode == "chat":  # the rendered history begins with all that is known, so the chain goes on around the gap
        assert (turn.edge, turn.parent) == (Edge.CONTINUE, 0)
    assert sum(len(trace.turns) for trace in merged.traces) == 3
    assert not merged.dropped


def test_11_a_system_line_that_changes_each_turn_is_seen() -> None:
    world = World("chat")
    history: list[Message] = [user("Fix the bug.")]
    for at in range(4):
        answer = compact(assistant("", call(f"c{at}")))
        world.ask([system(f"{at} tokens left"), *history], answer)
        history += [answer, result(f"c{at}")]
    assert [turn.cause for turn in world.forest.turns] == [None, *[Cause.SYSTEM_CHANGED] * 3]
    merged = checked(world)
    assert [trace.kind for trace in merged.traces] == ["main"] * 4
    assert not merged.dropped


def test_12_weights_change_between_turns_and_within_one() -> None:
    world = World()
    answer = assistant("", call("c1"))
    world.ask(TASK, answer)
    world.version = "1"
    done = assistant("done now")
    length = len(said(done)) + 1
    spans = (VersionSpan("1", 0, 2), VersionSpan("2", 2, length))
    world.ask([*TASK, answer, result("c1")], done, versions=spans)
    (trace,) = checked(world).traces
    assert [span.version for span in trace.versions] == ["0", "1", "2"]
    assert sum(span.end - span.start for span in trace.versions) == trace.trained_tokens


def test_13_a_disconnected_answer_is_not_trained_unless_it_turns_up() -> None:
    world = World()
    lost = world.ask(TASK, assistant("", call("c1")))
    world.forest.mark(lost.index, status=Status.UNSEEN)
    assert checked(world).dropped == {"unseen": len(lost.sampled)}
    world.ask([*TASK, assistant("", call("c1")), result("c1")], assistant("done"))
    assert lost.status is Status.KEPT
    assert not checked(world).dropped


def test_14_a_call_in_flight_at_the_deadline() -> None:
    world = World()
    answer = assistant("", call("c1"))
    world.ask(TASK, answer)
    world.ask(
        [*TASK, answer, result("c1")],
        Message("assistant", ()),
        sampled=encode("half an ans"),
        end=False,
        finish="abort",
        status=Status.PARTIAL,
    )
    merged = checked(world)
    assert [trace.turns for trace in merged.traces] == [(0,)]
    assert merged.dropped == {"partial": sampled(world.calls, 1)}


def test_15_a_tool_call_that_cannot_be_parsed_is_trained_as_sampled() -> None:
    world = World()
    broken = Message("assistant", (Text("bash {oops"),))
    ids = [CALL, *letters("bash {oops"), UNCALL]
    world.ask(TASK, broken, sampled=ids)
    world.ask([*TASK, broken, user("That was no valid call.")], assistant("", call("c1")))
    (trace,) = checked(world).traces
    start = len(world.calls[0].context)
    assert trace.token_ids[start : start + len(ids)].tolist() == ids
    assert trace.loss_mask[start : start + len(ids)].all()


def test_logprobs_that_are_not_the_policys_are_masked_but_stay_context() -> None:
    world = World()
    forced = assistant("", call("c1"))
    world.ask(TASK, forced, flags=frozenset({Flag.CONSTRAINED}))
    world.ask([*TASK, forced, result("c1")], assistant("done"))
    merged = checked(world)
    assert [trace.turns for trace in merged.traces] == [(1,)]
    assert merged.dropped == {"constrained": sampled(world.calls, 0)}
