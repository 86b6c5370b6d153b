# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Differences between recorded and later log-probabilities: by edge kind, of comparable tokens only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.differences import OTHER_TEMPERATURE, OTHER_WEIGHTS, TOO_LONG, UNKNOWN_WEIGHTS, Differences
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import VersionSpan
from tests.forest.test_builders import branched
from tests.forest.world import World

ALL_KINDS = {"sub_agent": "train", "side_call": "train"}


def measured(world: World, traces: list[Trace], differences: Differences, *, off: float = 0.0) -> Differences:
    """Compared with an engine that is `off` by so much everywhere."""
    for trace in traces:
        if differences.wants(world.forest, trace):
            differences.add(world.forest, trace, trace.logprobs - np.float32(off))
    return differences


def test_every_trained_token_is_compared_under_its_turns_edge() -> None:
    world = branched()
    traces = build(world.forest, config=ALL_KINDS).traces
    found = {spread.edge: spread for spread in measured(world, traces, Differences("0"), off=0.5).spreads()}
    sampled = dict.fromkeys(found, 0)
    for turn in world.forest.turns:
        sampled[turn.edge] += len(turn.sampled)
    assert {edge: spread.count for edge, spread in found.items()} == sampled
    assert set(found) == {Edge.ROOT, Edge.CONTINUE, Edge.SUB_AGENT, Edge.SIDE_CALL}
    for spread in found.values():
        assert (spread.mean, spread.p50, spread.p99, spread.max) == pytest.approx((0.5,) * 4)


def test_the_worst_token_is_named() -> None:
    world = branched()
    (trace, *_) = build(world.forest).traces
    scored = trace.logprobs.copy()
    scored[world.forest[1].context_length + 2] -= 3
    differences = Differences("0")
    differences.add(world.forest, trace, scored)
    (spread,) = [one for one in differences.spreads() if one.edge is Edge.CONTINUE]
    assert (spread.worst, spread.at, spread.max) == (1, 2, pytest.approx(3))
    assert spread.p50 == 0
    assert differences.largest == spread.max


@pytest.mark.parametrize(
    ("engine", "any_version", "left_out"),
    [
        ("0", False, None),
        ("1", False, OTHER_WEIGHTS),
        (None, False, UNKNOWN_WEIGHTS),
        (None, True, None),
        ("1", True, None),
    ],
)
def test_other_weights_are_counted(engine: str | None, any_version: bool, left_out: str | None) -> None:
    world = branched()
    traces = build(world.forest).traces
    differences = measured(world, traces, Differences(engine, any_version))
    trained = sum(trace.trained_tokens for trace in traces)
    assert differences.left_out == ({} if left_out is None else {left_out: trained})
    assert sum(spread.count for spread in differences.spreads()) == (trained if left_out is None else 0)
    assert differences.largest == 0


def test_part_of_a_trace_can_be_of_the_engines_weights() -> None:
    world = branched()
    (trace, *_) = build(world.forest).traces
    mixed = (VersionSpan("0", trace.versions[0].start, trace.versions[0].end), *trace.versions[2:])
    changed = replace(trace, versions=(mixed[0], *[replace(span, version="1") for span in mixed[1:]]))
    differences = measured(world, [changed], Differences("1"))
    counts = [len(turn.sampled) for turn in (world.forest[index] for index in trace.turns)]
    assert differences.left_out == {OTHER_WEIGHTS: counts[0], UNKNOWN_WEIGHTS: counts[1]}
    assert [spread.count for spread in differences.spreads()] == [counts[2]]


def test_a_trace_that_does_not_fit_the_engine_is_counted() -> None:
    world = branched()
    (trace, *_) = build(world.forest).traces
    differences = Differences("0")
    differences.too_long(trace)
    assert differences.left_out == {TOO_LONG: trace.trained_tokens}


def test_tokens_of_another_temperature_are_not_compared() -> None:
    """Engines score at temperature 1."""
    world = branched()
    world.forest.turns[1].temperature = 0.7
    traces = build(world.forest, config=ALL_KINDS).traces
    found = measured(world, traces, Differences("0"), off=0.5)
    heated = len(world.forest[1].sampled)
    assert found.left_out == {OTHER_TEMPERATURE: heated}
    assert sum(spread.count for spread in found.spreads()) + heated == sum(trace.trained_tokens for trace in traces)
