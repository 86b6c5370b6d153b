# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Builders: what they own, cut, mask and drop, and how others' builders are found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from nemo_gym_polar.forest.builders import Build, Options, build, register, resolve
from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.turn import Cause, Edge, Status
from tests.forest.invariants import check_build, sampled
from tests.forest.world import World, assistant, call, result, system, user

TASK = [system("You are an agent."), user("Fix the bug.")]


def branched() -> World:
    """Turns 0-1-2, a branch 3 from turn 0, a sub-agent 4, a side call 5."""
    world = World()
    first = assistant("", call("c0", '{"prompt": "look around here"}', "task"))
    world.ask(TASK, first)
    long = [*TASK, first, result("c0", "one")]
    world.ask(long, assistant("", call("c1")))
    world.ask([*long, assistant("", call("c1")), result("c1")], assistant("done with it"))
    world.ask([*TASK, first, result("c0", "two")], assistant("no"))
    world.ask([system("Helper."), user("look around here")], assistant("found it"))
    world.ask([system("Titles."), user("x")], assistant("Title"), tools=())
    return world


def test_chains_share_ancestors_but_own_them_once() -> None:
    world = branched()
    made = build(world.forest)
    check_build(world, made)
    assert [(trace.kind, trace.turns, trace.parent, trace.edge) for trace in made.traces] == [
        ("main", (0, 1, 2), None, Edge.ROOT),
        ("main", (3,), 0, Edge.CONTINUE),
        ("sub_agent", (4,), 0, Edge.SUB_AGENT),
    ]
    assert [trace.chain_digest for trace in made.traces] == [world.forest[tip].digest.hex() for tip in (2, 3, 4)]
    assert made.traces[1].shared_prefix == world.forest[0].length
    assert made.dropped == {"side_call": sampled(world.calls, 5)}


def test_the_edge_of_a_trace_is_found_past_turns_that_nobody_owns() -> None:
    world = World()
    spawning = assistant("", call("c0", '{"prompt": "look around here"}', "task"))
    world.ask(TASK, spawning)
    inner, answer = [system("Helper."), user("look around here")], assistant("", call("c1"))
    lost = world.ask(inner, answer)
    world.ask([*inner, answer, result("c1")], assistant("found it"))
    world.forest.mark(lost.index, status=Status.PARTIAL)
    made = build(world.forest, config={"sub_agent": "train"})
    assert [(trace.turns, trace.parent, trace.edge) for trace in made.traces] == [
        ((0,), None, Edge.ROOT),
        ((2,), 0, Edge.SUB_AGENT),
    ]
    assert world.forest[2].edge is Edge.CONTINUE


def test_a_broken_chain_and_a_second_answer_are_told_apart() -> None:
    world = World(mode="chat")
    first = assistant("", call("c0", '{"command":  "ls"}'))
    world.ask(TASK, first)
    world.ask(TASK, assistant("no"))
    world.ask([*TASK, first, result("c0")], assistant("done"))
    world.forest.mark(0, status=Status.KEPT)
    world.forest.mark(1, status=Status.KEPT)
    made = build(world.forest)
    assert {trace.turns: (trace.parent, trace.edge) for trace in made.traces} == {
        (0,): (None, Edge.ROOT),
        (1,): (0, Edge.RETRY),
        (2,): (0, Edge.ROOT),
    }
    assert world.forest[2].cause is Cause.ARGUMENTS_CHANGED


def test_the_main_chain_alone() -> None:
    world = branched()
    for strategy in ("prefix_merging", "per_request"):
        made = build(world.forest, strategy, {"main_chain": True})
        check_build(world, made)
        assert {turn for trace in made.traces for turn in trace.turns} == {0, 1, 2}
        assert made.dropped["main_chain"] == sampled(world.calls, 3, 4, 5)


@pytest.mark.parametrize("strategy", ["prefix_merging", "per_request"])
def test_rules_by_kind(strategy: str) -> None:
    world = branched()
    made = build(world.forest, strategy, {"sub_agent": "mask", "side_call": "train"})
    check_build(world, made)
    masked = [trace for trace in made.traces if trace.kind == "sub_agent"]
    assert [trace.trained_tokens for trace in masked] == [0]
    assert made.dropped == {"sub_agent": sampled(world.calls, 4)}
    assert "side_call" in {trace.kind for trace in made.traces}


def test_a_length_limit_leaves_an_exact_prefix_and_counts_the_rest() -> None:
    world = branched()
    whole = build(world.forest).traces[0]
    for limit in range(1, len(whole) + 2):
        made = build(world.forest, config={"max_tokens": limit})
        check_build(world, made)
        assert all(len(trace) <= limit for trace in made.traces)
        assert (made.dropped["max_tokens"] == 0) == (limit >= len(whole))
        for trace in made.traces:
            assert trace.trained_tokens > 0
            assert (trace.finish_reason == "length") == (len(trace) < world.forest[trace.turns[-1]].length)


def test_a_forest_without_turns_gives_nothing() -> None:
    for strategy in ("prefix_merging", "per_request"):
        assert build(World().forest, strategy) == Build([], Counter())


def nothing(store: TurnStore, options: Options) -> Build:
    return Build(dropped=Counter({"by taste": sum(len(turn.sampled) for turn in store.turns)}))


def test_a_builder_of_ones_own_by_path_and_by_name() -> None:
    world = branched()
    made = build(world.forest, f"{__name__}:nothing")
    assert made.dropped["by taste"] == sampled(world.calls, *range(6))
    register("nothing", nothing)
    assert resolve("nothing") is nothing
    with pytest.raises(BuilderError, match="registered already"):
        register("nothing", build)


def broken(store: TurnStore, options: Options) -> Build:
    raise KeyError("reward")


def forgetful(store: TurnStore, options: Options) -> None: ...


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "broken' failed: KeyError: 'reward'"),
        ("forgetful", "forgetful' gave a NoneType; it must return a Build"),
    ],
)
def test_a_builder_of_ones_own_that_fails_is_named(name: str, message: str) -> None:
    with pytest.raises(BuilderError, match=message):
        build(branched().forest, f"{__name__}:{name}")


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("prefix-merging", "no builder 'prefix-merging'; choose one of .*prefix_merging"),
        ("no.such.module:build", "can't import"),
        ("math:no_such", "can't import"),
        ("math:pi", "not callable"),
    ],
)
def test_an_unknown_builder(strategy: str, message: str) -> None:
    with pytest.raises(BuilderError, match=message):
        resolve(strategy)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"max_token": 5}, "unknown key 'max_token'; known are .*max_tokens"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": True}, "max_tokens is True"),
        ({"max_tokens": "5"}, "max_tokens is '5'"),
        ({"side_call": "skip"}, "side_call is 'skip'; choose one of train, mask, drop"),
        ({"main": "drop"}, "unknown key 'main'"),
        ({"main_chain": "no"}, "main_chain is 'no'"),
    ],
)
def test_a_wrong_setting(config: dict[str, Any], message: str) -> None:
    with pytest.raises(BuilderError, match=message):
        build(World().forest, config=config)
