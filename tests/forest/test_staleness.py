# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The age of tokens, and what is left of a trace without those that are too old."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.forest.staleness import measure_ages, version_number, without_stale
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.tokens import VersionSpan

versions = st.sampled_from(["0", "1", "2", "step-3", "7", "default", ""])
layouts = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), versions | st.none()), max_size=6)


def make(layout: list[tuple[int, int, str | None]]) -> Trace:
    """Context, sampled tokens and their version, again and again; None where the engine does not tell."""
    mask: list[bool] = []
    spans = []
    for context, sampled, version in layout:
        mask += [False] * context + [True] * sampled
        if version is not None:
            spans.append(VersionSpan(version, len(mask) - sampled, len(mask)))
    loss = np.array(mask, bool)
    logprobs = np.where(loss, np.float32(-1), np.float32(0)).astype(np.float32)
    return Trace("s", 0, "main", np.arange(len(mask), dtype=np.int32), loss, logprobs, (0,), tuple(spans))


@pytest.mark.parametrize(
    ("version", "number"), [("12", 12), ("step-12", 12), ("v2.3", 3), ("default", None), ("", None), ("3b", None)]
)
def test_a_version_is_a_number_or_ends_in_one(version: str, number: int | None) -> None:
    assert version_number(version) == number


def test_ages_count_updates() -> None:
    ages = measure_ages([make([(2, 3, "5"), (1, 1, "7"), (0, 2, None), (1, 1, "9")])], now=8)
    assert (ages.tokens, ages.total, ages.oldest, ages.unknown) == (5, 3 * 3 + 1, 3, 2)
    assert ages.mean == 2.0
    assert not ages.within(9)
    assert measure_ages([make([(2, 3, "5")])], now=8).within(3)
    assert not measure_ages([make([(2, 3, "5")])], now=8).within(2)


@given(layouts, st.integers(0, 9), st.integers(0, 9))
def test_only_known_and_fresh_tokens_stay_in_the_loss(
    layout: list[tuple[int, int, str | None]], now: int, bound: int
) -> None:
    trace = make(layout)
    before = trace.loss_mask.copy()
    kept = without_stale(trace, now, bound)
    assert (trace.loss_mask == before).all()
    wanted = sum(
        sampled
        for _, sampled, version in layout
        if version is not None and (number := version_number(version)) is not None and now - number <= bound
    )
    assert kept.trained_tokens == wanted
    assert measure_ages([kept], now).within(bound)
    assert not (kept.loss_mask & ~before).any()
    assert (kept.logprobs[~kept.loss_mask] == 0).all()
    assert (kept.logprobs[kept.loss_mask] == -1).all()
    assert (kept.token_ids == trace.token_ids).all()
    covered = np.zeros(len(trace), bool)
    for span in kept.versions:
        covered[span.start : span.end] = True
    assert (covered == kept.loss_mask).all()
