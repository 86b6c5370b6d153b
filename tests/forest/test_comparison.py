# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.builders.comparison import compare
from nemo_gym_polar.forest.trace import Trace
from tests.export.worlds import BUILDERS, CONFIGS, worlds
from tests.forest.world import World, assistant, user


def chain() -> World:
    """Three calls, each of which continues the one before."""
    world = World()
    history = [user("one")]
    for number in range(3):
        answer = assistant(f"answer {number}")
        world.ask(history, answer)
        history += [answer, user(f"more {number}")]
    return world


def test_the_same_build_twice_is_the_same() -> None:
    store = chain().forest
    assert compare(store, build(store), build(store)).same


def test_another_builder_moves_the_loss_of_all_turns_but_the_last() -> None:
    store = chain().forest
    found = compare(store, build(store, "prefix_merging"), build(store, "per_request"))
    assert not found.same
    assert [(change.left and change.left.tip, change.right and change.right.tip) for change in found.traces] == [
        (None, 0),
        (None, 1),
        (2, 2),
    ]
    assert {"loss_mask", "logprobs", "turns"} <= set(found.traces[2].fields)
    assert "token_ids" not in found.traces[2].fields
    owners = [(change.left and change.left.tip, change.right and change.right.tip) for change in found.owners]
    assert owners == [(2, 0), (2, 1)]
    assert [change.turn for change in found.owners] == [0, 1]


def test_a_cut_is_seen_in_tokens_and_owners() -> None:
    store = chain().forest
    limit = store[2].context_length + 1
    (trace,), (owner,) = (
        (found := compare(store, build(store), build(store, config={"max_tokens": limit}))).traces,
        found.owners,
    )
    assert trace.right is not None
    assert trace.right.tokens == limit
    assert (owner.turn, owner.right and owner.right.trained) == (2, 1)


def losses(traces: list[Trace], store: Any) -> Mapping[int, tuple[tuple[int, ...], int]]:
    """Turn → the turns of the trace that has a loss on it, and on how many tokens; reckoned without `compare`."""
    return {
        turn: (trace.turns[-1:], mask)
        for trace in traces
        for turn in trace.turns
        if (mask := int(trace.loss_mask[store[turn].context_length : store[turn].length].sum()))
    }


@settings(deadline=None, max_examples=60)
@given(worlds(), BUILDERS, CONFIGS, BUILDERS, CONFIGS)
def test_owners_are_exactly_the_turns_whose_loss_moved(
    world: World, one: str, one_config: dict[str, Any], other: str, other_config: dict[str, Any]
) -> None:
    store = world.forest
    left, right = build(store, one, one_config), build(store, other, other_config)
    found = compare(store, left, right)
    before, after = losses(left.traces, store), losses(right.traces, store)
    moved = {turn for turn in before.keys() | after.keys() if before.get(turn) != after.get(turn)}
    assert {change.turn for change in found.owners} == moved
    assert sum(change.left is not None for change in found.traces) <= len(left.traces)
    mirrored = compare(store, right, left)
    assert [(change.right, change.left) for change in mirrored.traces] == [(c.left, c.right) for c in found.traces]
