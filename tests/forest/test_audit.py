# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An audit finds every way in which a trace can lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from nemo_gym_polar.forest.audit import Breach, audit, audit_traces, audit_turns
from nemo_gym_polar.forest.builders import Build, build
from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge, Status
from nemo_gym_polar.tokens import VersionSpan
from tests.forest.test_builders import branched
from tests.forest.world import World


def breaches(world: World, made: Build) -> set[Breach]:
    return {finding.breach for finding in audit(world.forest, made.traces, made.dropped)}


def test_a_sound_build_has_no_breaches() -> None:
    world = branched()
    for config in ({}, {"max_tokens": 40}, {"main_chain": True}, {"sub_agent": "mask"}):
        assert breaches(world, build(world.forest, config=config)) == set()


def first_trained(trace: Trace) -> int:
    return int(trace.loss_mask.argmax())


def changed(field: str, value: Callable[[Trace], object]) -> Callable[[Build], None]:
    def change(made: Build) -> None:
        array = getattr(made.traces[0], field).copy()
        array[first_trained(made.traces[0])] = value(made.traces[0])
        setattr(made.traces[0], field, array)

    return change


def test_a_spliced_chain_is_caught() -> None:
    """The reference system's way: sampled ids put into a context that was rendered anew."""
    world = branched()
    made = build(world.forest)
    trace = made.traces[0]
    spliced = trace.token_ids.copy()
    spliced[world.forest[1].context_length - 2] += 1
    made.traces[0] = replace(trace, token_ids=spliced)
    assert Breach.CONTEXT in breaches(world, made)


@pytest.mark.parametrize(
    ("change", "breach"),
    [
        (changed("token_ids", lambda trace: 9999), Breach.CONTEXT),
        (changed("loss_mask", lambda trace: False), Breach.MASK),
        (changed("logprobs", lambda trace: -7.5), Breach.LOGPROB),
        (lambda made: setattr(made.traces[0], "versions", (VersionSpan("0", 0, 3),)), Breach.VERSION),
        (
            lambda made: setattr(
                made.traces[0], "versions", tuple(replace(span, version="9") for span in made.traces[0].versions)
            ),
            Breach.VERSION,
        ),
        (lambda made: setattr(made.traces[0], "versions", ()), Breach.VERSION),
        (lambda made: setattr(made.traces[0], "turns", (0, 99)), Breach.CONTEXT),
        (lambda made: setattr(made.traces[0], "kind", "compaction"), Breach.LABEL),
        (lambda made: setattr(made.traces[1], "edge", Edge.RETRY), Breach.LABEL),
        (lambda made: setattr(made.traces[0], "chain_digest", made.traces[1].chain_digest), Breach.DIGEST),
        (lambda made: setattr(made.traces[0], "logprobs", np.zeros(3, np.float32)), Breach.LENGTH),
        (lambda made: setattr(made.traces[0], "turns", (0, 1)), Breach.CONTEXT),
        (lambda made: setattr(made.traces[1], "turns", (0, 3)), Breach.OWNER),
        (lambda made: setattr(made.traces[1], "parent", 7), Breach.SHARING),
        (lambda made: setattr(made.traces[1], "shared_prefix", len(made.traces[1])), Breach.SHARING),
        (lambda made: made.dropped.clear(), Breach.ACCOUNT),
        (lambda made: made.traces.pop(), Breach.ACCOUNT),
    ],
)
def test_a_changed_trace_is_caught(change: Callable[[Build], None], breach: Breach) -> None:
    world = branched()
    made = build(world.forest)
    change(made)
    assert breach in breaches(world, made)


def test_a_kept_turn_that_no_trace_owns_is_named() -> None:
    world = branched()
    made = build(world.forest)
    made.traces.pop()
    (finding,) = audit(world.forest, made.traces, made.dropped)
    assert finding.message.endswith("kept, but in no trace: turn 4, 5")


def test_some_traces_of_a_build_can_be_checked_without_the_others() -> None:
    world = branched()
    others = build(world.forest).traces[1:]
    assert list(audit_traces(world.forest, others, whole=False)) == []
    assert {finding.breach for finding in audit_traces(world.forest, others)} == {Breach.SHARING}


def test_an_answer_that_was_not_kept_must_not_be_owned() -> None:
    world = branched()
    made = build(world.forest)
    world.forest.mark(2, status=Status.UNSEEN)
    assert Breach.OWNER in breaches(world, made)


def test_changed_turns_are_caught() -> None:
    world = branched()
    made = build(world.forest)
    world.forest[1].logprobs = world.forest[1].logprobs * 2
    world.forest[3].edge = Edge.CONTINUE
    world.forest[3].shared -= 1
    assert {Breach.DIGEST, Breach.STRUCTURE} <= breaches(world, made)


def test_a_turn_whose_logprobs_are_too_few_is_caught() -> None:
    world = branched()
    world.forest[1].logprobs = world.forest[1].logprobs[:-1]
    assert Breach.LENGTH in {finding.breach for finding in audit_turns(world.forest)}


def test_trace_digests_tell_what_is_trained_on() -> None:
    one, other = build(branched().forest).traces[0], build(branched().forest).traces[0]
    assert trace_digest(one) == trace_digest(other)
    other.loss_mask[-1] = False
    assert trace_digest(one) != trace_digest(other)
