# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The invariants of traces, checked against what the engine knows and not against the forest's own arrays."""

from __future__ import annotations

import numpy as np

from nemo_gym_polar.forest.builders import Build
from nemo_gym_polar.forest.side import UNKNOWN
from nemo_gym_polar.forest.turn import Status
from tests.forest.world import Truth, World, experts


def check_build(world: World, build: Build) -> None:
    check_token_truth(world, build)
    check_side_arrays(world, build)
    check_one_owner(world, build)
    check_sharing(build)


def check_token_truth(world: World, build: Build) -> None:
    """Every masked token was sampled, in exactly the context that precedes it, with that log-probability."""
    for trace in build.traces:
        assert len(trace.token_ids) == len(trace.loss_mask) == len(trace.logprobs)
        accounted = np.zeros(len(trace), np.bool_)
        for index in trace.turns:
            truth = world.calls[index]
            start = len(truth.context)
            end = min(start + len(truth.sampled), len(trace))
            assert trace.token_ids[:start].tolist() == truth.context[: len(trace)].tolist()
            if start >= len(trace) or not trace.loss_mask[start:end].any():
                continue
            assert trace.loss_mask[start:end].all()
            assert trace.token_ids[start:end].tolist() == truth.sampled[: end - start].tolist()
            assert trace.logprobs[start:end].tolist() == truth.logprobs[: end - start].tolist()
            accounted[start:end] = True
        assert (accounted == trace.loss_mask).all()
        assert not trace.logprobs[~trace.loss_mask].any()
        covered = np.zeros(len(trace), np.int32)
        for span in trace.versions:
            covered[span.start : span.end] += 1
        assert (covered == trace.loss_mask).all()


def check_side_arrays(world: World, build: Build) -> None:
    """Each token has the row that the engine gave it; unknown are only the last tokens of answers."""
    for trace in build.traces:
        rows = trace.side["experts"]
        unknown = (rows == UNKNOWN).all(axis=1)
        assert len(rows) == len(trace)
        assert (rows[~unknown] == experts(trace.token_ids)[~unknown]).all()
        ends = {len(truth.context) + len(truth.sampled) - 1 for truth in world.calls}
        assert set(np.flatnonzero(unknown)) <= ends


def check_one_owner(world: World, build: Build) -> None:
    """Each kept turn is owned at most once, and every sampled token is trained on or counted."""
    owned = [index for trace in build.traces for index in trace.turns]
    assert len(owned) == len(set(owned))
    assert all(world.forest[index].status is Status.KEPT for index in owned)
    assert build.trained_tokens + sum(build.dropped.values()) == sum(len(truth.sampled) for truth in world.calls)
    assert all(build.dropped.values())


def check_sharing(build: Build) -> None:
    """A trace begins with as many of its parent's tokens as it says."""
    for trace in build.traces:
        if trace.parent is None:
            assert trace.shared_prefix == 0
            continue
        assert trace.parent < trace.index
        parent = build.traces[trace.parent]
        shared = trace.token_ids[: trace.shared_prefix].tolist()
        assert shared == parent.token_ids[: trace.shared_prefix].tolist()
        assert len(shared) == trace.shared_prefix


def check_contexts(world: World) -> None:
    """The forest gives back every context and answer exactly."""
    for turn, truth in zip(world.forest.turns, world.calls, strict=True):
        if turn.has_tokens:
            assert world.forest.context(turn.index).tolist() == truth.context.tolist()
            assert world.forest.tokens(turn.index).tolist() == [*truth.context.tolist(), *truth.sampled.tolist()]


def sampled(calls: list[Truth], *turns: int) -> int:
    return sum(len(calls[turn].sampled) for turn in turns)
