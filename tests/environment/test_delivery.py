# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.environment.delivery import choose
from nemo_gym_polar.forest.trace import Trace, TraceKind

KINDS: tuple[TraceKind, ...] = ("main", "sub_agent", "compaction", "side_call")


def trace(index: int, kind: TraceKind, sampled: int, *, turns: tuple[int, ...] | None = None) -> Trace:
    mask = np.array([False] + [True] * sampled, dtype=np.bool_)
    ids = np.zeros(len(mask), dtype=np.int32)
    return Trace("s", index, kind, ids, mask, mask.astype(np.float32), turns=(index,) if turns is None else turns)


def test_the_chain_with_the_first_prompt_wins_over_a_longer_one() -> None:
    first, longer = trace(0, "main", 3), trace(1, "main", 30)
    delivery = choose([longer, first])
    assert delivery.trace is first
    assert delivery.usable
    assert delivery.undelivered == {"main": 30, "sub_agent": 0, "compaction": 0, "side_call": 0}


def test_a_side_call_before_the_main_chain_is_left_behind() -> None:
    side, main = trace(0, "side_call", 9), trace(1, "main", 3)
    assert choose([side, main]).trace is main


def test_without_a_main_chain_something_is_delivered_but_not_to_train_on() -> None:
    delivery = choose([trace(0, "side_call", 4)])
    assert delivery.trace is not None
    assert not delivery.usable


def test_nothing_sampled_means_nothing_delivered() -> None:
    assert choose([]).trace is None
    assert choose([trace(0, "main", 0)]).trace is None


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 9)), max_size=8))
def test_every_trained_token_is_delivered_or_counted(spec: list[tuple[TraceKind, int]]) -> None:
    traces = [trace(index, kind, sampled) for index, (kind, sampled) in enumerate(spec)]
    delivery = choose(traces)
    delivered = delivery.trace.trained_tokens if delivery.trace else 0
    assert delivered + sum(delivery.undelivered.values()) == sum(sampled for _, sampled in spec)
