# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Traces for tests of what is written from them: any that the schema allows, and equality to the last bit."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import numpy as np
from hypothesis import strategies as st

from nemo_gym_polar.forest.trace import Trace, TraceKind
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import SideArrays, VersionSpan

ARRAYS = ("token_ids", "loss_mask", "logprobs")


def equal(one: Trace, other: Trace) -> bool:
    plain = [item.name for item in fields(Trace) if item.name not in (*ARRAYS, "side")]
    return (
        _same_side(one.side, other.side)
        and all(getattr(one, name) == getattr(other, name) for name in plain)
        and all(
            getattr(one, name).dtype == getattr(other, name).dtype
            and np.array_equal(getattr(one, name), getattr(other, name))
            for name in ARRAYS
        )
    )


def _same_side(one: SideArrays, other: SideArrays) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one
    )


@st.composite
def traces(draw: st.DrawFn, alphabet: int = 2**31 - 1) -> Trace:
    """A small `alphabet` makes traces that share their beginnings."""
    ids = draw(st.lists(st.integers(0, alphabet), max_size=12))
    mask = draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
    number = st.floats(-100, 0, width=32)
    logprobs = np.zeros(len(ids), np.float32)
    logprobs[np.array(mask, np.bool_)] = draw(st.lists(number, min_size=sum(mask), max_size=sum(mask)))
    return Trace(
        session_id=draw(st.text(max_size=5)),
        index=draw(st.integers(0, 99)),
        kind=draw(st.sampled_from(get_args(TraceKind))),
        token_ids=np.array(ids, np.int32),
        loss_mask=np.array(mask, np.bool_),
        logprobs=logprobs,
        turns=tuple(draw(st.lists(st.integers(0, 99), max_size=3))),
        versions=tuple(
            draw(st.lists(st.builds(VersionSpan, st.text(max_size=3), *[st.integers(0, 9)] * 2), max_size=2))
        ),
        parent=draw(st.none() | st.integers(0, 9)),
        shared_prefix=draw(st.integers(0, 99)),
        edge=draw(st.sampled_from(Edge)),
        group=draw(st.none() | st.text(max_size=5)),
        chain_digest=draw(st.text("0123456789abcdef", max_size=8)),
        finish_reason=draw(st.sampled_from(["stop", "length"])),
        reward=draw(st.none() | st.floats(-1, 1)),
        weight=draw(st.floats(0, 1)),
        metadata=draw(st.dictionaries(st.text(max_size=3), st.integers(0, 9) | st.text(max_size=3), max_size=2)),
        side={
            name: np.full((len(ids), draw(st.integers(1, 3))), draw(st.integers(-1, 9)), np.int16)
            for name in draw(st.sets(st.text(max_size=3), max_size=2))
        },
        images=tuple(draw(st.lists(st.text("0123456789abcdef", max_size=4), max_size=2))),
    )
