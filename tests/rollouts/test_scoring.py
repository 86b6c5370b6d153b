# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.evaluators.base import EvaluatorError, Score
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.scoring import MASKED, apply, check_score
from nemo_gym_polar.rollouts.settings import PartialRule
from nemo_gym_polar.tokens import VersionSpan


def make(index: int, mask: list[bool]) -> Trace:
    return Trace(
        session_id="s",
        index=index,
        kind="main",
        token_ids=np.arange(len(mask), dtype=np.int32),
        loss_mask=np.array(mask, np.bool_),
        logprobs=np.where(mask, -1.0, 0.0).astype(np.float32),
        turns=(index,),
        versions=(VersionSpan("0", 0, len(mask)),),
    )


def test_a_reward_goes_to_every_trace() -> None:
    traces = [make(0, [False, True]), make(1, [True])]
    assert apply(Score(0.5), traces, PartialRule.TRAIN, Counter()) == 0.5
    assert [trace.reward for trace in traces] == [0.5, 0.5]


def test_trace_rewards_replace_it() -> None:
    traces = [make(0, [True]), make(1, [True])]
    assert apply(Score(0.5, (1.0, -1.0)), traces, PartialRule.TRAIN, Counter()) == 0.5
    assert [trace.reward for trace in traces] == [1.0, -1.0]


def test_zero_forgets_trace_rewards_too() -> None:
    traces = [make(0, [True])]
    assert apply(Score(0.5, (1.0,)), traces, PartialRule.ZERO, Counter()) == 0.0
    assert traces[0].reward == 0.0


@given(st.lists(st.lists(st.booleans(), max_size=9), max_size=5))
def test_masking_counts_what_it_takes(masks: list[list[bool]]) -> None:
    traces = [make(index, mask) for index, mask in enumerate(masks)]
    dropped = Counter({MASKED: 1})
    apply(Score(1.0), traces, PartialRule.MASK, dropped)
    assert dropped[MASKED] == 1 + sum(map(sum, masks))
    assert not any(trace.trained_tokens for trace in traces)
    assert not any(trace.logprobs.any() for trace in traces)
    assert not any(trace.versions for trace in traces)


@pytest.mark.parametrize(
    "score", [Score(float("nan")), Score(float("inf")), Score(1.0, (float("nan"),)), Score(1.0, (1.0, 1.0))]
)
def test_what_is_no_reward_is_refused(score: Score) -> None:
    with pytest.raises(EvaluatorError):
        check_score(score, [make(0, [True])])
