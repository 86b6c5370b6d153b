# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Bounds of age: what is too old gives no gradient, and is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nemo_gym_polar.rollouts.task import SessionResult
from nemo_gym_polar.tokens import VersionSpan
from nemo_gym_polar.training.credit import assign_credit
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.settings import CreditSettings
from tests.support.sessions import make_group


def sampled_under(group: list[SessionResult], *versions: str) -> list[SessionResult]:
    """The group with its traces' turns sampled under these weights, in turn."""
    for session in group:
        for trace in session.traces:
            trace.versions = tuple(replace(span, version=versions[index]) for index, span in enumerate(trace.versions))
    return group


def test_tokens_that_are_too_old_are_taken_out_and_counted() -> None:
    group = sampled_under(make_group([0, 1]), "3", "5")
    credit = assign_credit([group], CreditSettings(max_token_age=1), version=6)
    assert credit.untrained == {"stale_tokens": 2 * 4}
    assert credit.trained_tokens == 2 * 3
    assert credit.token_mass == 2 * 3
    assert [example.trace.versions for example in credit.examples] == 2 * [(VersionSpan("5", 18, 21),)]
    assert (credit.ages.tokens, credit.ages.oldest) == (14, 3)
    assert credit.ages.mean == pytest.approx((4 * 3 + 3 * 1) / 7)
    assert sum(trace.trained_tokens for session in group for trace in session.traces) == 14


def test_a_group_that_is_too_old_is_left_out_whole() -> None:
    old, new = sampled_under(make_group([0, 1]), "3", "5"), sampled_under(make_group([0, 1], seed=1), "5", "5")
    credit = assign_credit([old, new], CreditSettings(max_group_age=2), version=6)
    assert credit.excluded == {"stale_group": 2}
    assert credit.untrained == {"stale_group": 14}
    assert (credit.groups, credit.sessions, credit.trained_tokens) == (2, 2, 14)


def test_a_session_with_nothing_left_takes_no_part() -> None:
    first, second, third = make_group([0, 1, 1])
    sampled_under([first], "0", "0")
    credit = assign_credit(
        [[first, *sampled_under([second, third], "6", "6")]], CreditSettings(max_token_age=0), version=6
    )
    assert credit.excluded == {"session_without_tokens": 1}
    assert credit.untrained == {"stale_tokens": 7, "zero_advantage": 14}


def test_tokens_of_unknown_age_are_too_old_for_any_bound() -> None:
    group = make_group([0, 1])
    for session in group:
        session.traces[0].versions = ()
    assert assign_credit([group], CreditSettings(), version=6).trained_tokens == 14
    bounded = assign_credit([group], CreditSettings(max_token_age=100), version=6)
    assert (bounded.trained_tokens, bounded.untrained, bounded.ages.unknown) == (0, {"stale_tokens": 14}, 14)
    assert assign_credit([group], CreditSettings(max_group_age=100), version=6).excluded == {"stale_group": 2}


@pytest.mark.parametrize("bounds", [CreditSettings(max_token_age=0), CreditSettings(max_group_age=3)])
def test_a_bound_needs_to_know_the_weights_that_learn(bounds: CreditSettings) -> None:
    with pytest.raises(TrainingError, match="need the version of the weights"):
        assign_credit([make_group([0, 1])], bounds)


def test_every_token_is_trained_on_or_counted() -> None:
    groups = [sampled_under(make_group([0, 1, 1], seed=seed), str(seed), "4") for seed in range(6)]
    for settings in (CreditSettings(max_token_age=2), CreditSettings(max_token_age=1, max_group_age=3)):
        credit = assign_credit(groups, settings, version=5)
        assert credit.trained_tokens + credit.untrained.total() == 6 * 3 * 7
