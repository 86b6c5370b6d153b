# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever a harness does, the invariants hold."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.chat import Conversation
from nemo_gym_polar.forest.audit import audit
from nemo_gym_polar.forest.builders import Build, build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Status
from tests.forest.harness import Harness
from tests.forest.invariants import check_build, check_contexts
from tests.forest.world import Template, World

SESSIONS = st.builds(
    lambda mode, strip, compact, steps, seed: played(World(mode, Template(strip, compact)), steps, seed),
    st.sampled_from(["chat", "tokens"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 25),
    st.integers(0, 2**32),
)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "main_chain": st.booleans(),
        "side_call": st.sampled_from(["train", "mask", "drop"]),
        "sub_agent": st.sampled_from(["train", "mask", "drop"]),
        "compaction": st.sampled_from(["train", "mask", "drop"]),
        "max_tokens": st.integers(1, 400),
    },
)


def played(world: World, steps: int, seed: int) -> Harness:
    harness = Harness(world, Random(seed))
    harness.run(steps)
    return harness


@settings(deadline=None, max_examples=120)
@given(SESSIONS, CONFIGS, st.sampled_from(["per_request", "prefix_merging"]))
def test_every_build_of_every_session_is_sound(harness: Harness, config: dict[str, Any], strategy: str) -> None:
    check_contexts(harness.world)
    made = build(harness.world.forest, strategy, config)
    check_build(harness.world, made)
    assert audit(harness.world.forest, made.traces, made.dropped) == []


@settings(deadline=None, max_examples=60)
@given(SESSIONS)
def test_all_kept_tokens_are_trained_when_nothing_is_ruled_out(harness: Harness) -> None:
    turns = harness.world.forest.turns
    made = build(harness.world.forest, "prefix_merging", {"side_call": "train"})
    usable = sum(len(turn.sampled) for turn in turns if turn.status is Status.KEPT and not turn.flags)
    assert made.trained_tokens == usable
    assert made.dropped.keys() <= {"unseen", "partial", "constrained"}


@settings(deadline=None, max_examples=60)
@given(SESSIONS)
def test_an_answer_that_a_request_repeats_is_never_unseen(harness: Harness) -> None:
    world = harness.world
    for talk in harness.talks:
        world.match(talk.history, talk.tools)
    repeated = {part.id for talk in harness.talks for message in talk.history[-2:] for part in message.tool_calls}
    for turn in world.forest.turns:
        answer = world.forest.answer(turn)
        if turn.has_tokens and answer and {part.id for part in answer.tool_calls} & repeated:
            assert turn.status in (Status.KEPT, Status.PARTIAL)


@settings(deadline=None, max_examples=60)
@given(SESSIONS)
def test_a_journal_gives_back_the_same_forest(harness: Harness) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "session.journal"
        path.write_bytes(harness.world.journal())
        recovered = recover(path)
    assert recovered.damage is None
    assert recovered.torn == 0
    assert_same_forest(recovered.forest, harness.world.forest)
    for talk in harness.talks:
        conversation = Conversation(tuple(talk.history), talk.tools)
        before, after = harness.world.forest.match(conversation), recovered.forest.match(conversation)
        assert (before.edge, before.parent, before.cause, before.new) == (
            after.edge,
            after.parent,
            after.cause,
            after.new,
        )


def assert_same_forest(one: Forest, other: Forest) -> None:
    assert len(one) == len(other)
    for left, right in zip(one.turns, other.turns, strict=True):
        for name in (
            "edge",
            "parent",
            "shared",
            "status",
            "continued",
            "cause",
            "drift",
            "flags",
            "versions",
            "digest",
        ):
            assert getattr(left, name) == getattr(right, name), name
        assert one.conversation(left) == other.conversation(right)
        assert one.answer(left) == other.answer(right)
    assert_same_traces(build(one), build(other))


def assert_same_traces(one: Build, other: Build) -> None:
    assert one.dropped == other.dropped
    assert [trace.turns for trace in one.traces] == [trace.turns for trace in other.traces]
    for left, right in zip(one.traces, other.traces, strict=True):
        assert left.token_ids.tolist() == right.token_ids.tolist()
        assert left.loss_mask.tolist() == right.loss_mask.tolist()
        assert left.logprobs.tolist() == right.logprobs.tolist()
        assert left.versions == right.versions
