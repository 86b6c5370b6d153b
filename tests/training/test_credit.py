# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus
from nemo_gym_polar.training.credit import assign_credit, baselines, shares
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.loss import token_weight
from nemo_gym_polar.training.settings import CreditSettings, LossSettings
from tests.support.sessions import make_group, make_session, make_trace

DEFAULT = CreditSettings(scale="none")
REWARDS = st.lists(st.floats(-3, 3, allow_nan=False), min_size=2, max_size=8)


def traces(lengths: list[int], **kinds: int) -> list[Trace]:
    made = [make_trace([(3, False), (length, True)], index=index) for index, length in enumerate(lengths)]
    for kind, index in kinds.items():
        made[index].kind = kind  # type: ignore[assignment]  # the keyword is the kind
    return made


@given(REWARDS)
def test_leave_one_out_is_the_mean_of_the_others(rewards: list[float]) -> None:
    expected = [np.mean([*rewards[:index], *rewards[index + 1 :]]) for index in range(len(rewards))]
    assert np.allclose(baselines(np.array(rewards), "leave_one_out"), expected, atol=1e-9)


@given(REWARDS, st.sampled_from(["leave_one_out", "group_mean"]), st.sampled_from(["none", "group_std"]))
def test_advantages_of_a_group_add_up_to_zero(rewards: list[float], baseline: str, scale: str) -> None:
    settings = CreditSettings.model_validate({"baseline": baseline, "scale": scale})
    credit = assign_credit([make_group(rewards)], settings)
    assert sum(example.advantage for example in credit.examples) == pytest.approx(0, abs=1e-6)


@given(REWARDS)
def test_leave_one_out_is_the_group_mean_stretched(rewards: list[float]) -> None:
    count = len(rewards)
    alone = [one.advantage for one in assign_credit([make_group(rewards)], DEFAULT).examples]
    mean = CreditSettings(baseline="group_mean", scale="none")
    together = [one.advantage for one in assign_credit([make_group(rewards)], mean).examples]
    if len(alone) == len(together) == count:
        assert np.allclose(alone, np.array(together) * count / (count - 1), atol=1e-6)


def test_group_std_makes_rewards_of_any_size_alike() -> None:
    settings = CreditSettings(baseline="group_mean", scale="group_std")
    small = assign_credit([make_group([0, 0.001, 0.002, 0.001])], settings)
    large = assign_credit([make_group([0, 100, 200, 100])], settings)
    assert [one.advantage for one in small.examples] == pytest.approx(
        [one.advantage for one in large.examples], rel=1e-2
    )


@given(
    st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=40), min_size=2, max_size=6),
    st.data(),
)
def test_a_session_of_many_chains_weighs_as_much_as_one(sessions: list[list[int]], data: st.DataObject) -> None:
    rewards = data.draw(st.lists(st.integers(0, 1), min_size=len(sessions), max_size=len(sessions)))
    group = [
        make_session(reward, traces(lengths), sample=index)
        for index, (reward, lengths) in enumerate(zip(rewards, sessions, strict=True))
    ]
    credit = assign_credit([group], DEFAULT)
    owner = {id(trace): session.sample for session in group for trace in session.traces}
    mass = dict.fromkeys(range(len(group)), 0.0)
    spread: dict[int, set[float]] = {}
    normaliser = LossSettings(normalisation="session")
    for example in credit.examples:
        tokens = example.trace.trained_tokens
        each = token_weight(example.weight, tokens, normaliser, credit.token_mass, credit.sessions)
        mass[owner[id(example.trace)]] += each * tokens
        spread.setdefault(owner[id(example.trace)], set()).add(example.advantage)
    assert all(len(advantages) == 1 for advantages in spread.values())
    if len(set(rewards)) > 1:
        assert list(mass.values()) == pytest.approx([1 / len(group)] * len(group))
    else:
        assert not credit.examples and credit.zero_variance_groups == 1


def test_chains_of_equal_length_weigh_as_one_of_that_length_under_token_normalisation() -> None:
    group = [make_session(1, traces([5] * 40)), make_session(0, traces([5]), sample=1)]
    credit = assign_credit([group], DEFAULT)
    weights = [
        token_weight(one.weight, 5, LossSettings(), credit.token_mass, credit.sessions) * 5 for one in credit.examples
    ]
    assert sum(weights[:40]) == pytest.approx(weights[40]) == pytest.approx(0.5)


def test_side_calls_weigh_nothing_and_are_counted() -> None:
    group = [make_session(1, traces([5, 7], side_call=1)), make_session(0, traces([5]), sample=1)]
    credit = assign_credit([group], DEFAULT)
    assert [one.weight for one in credit.examples] == [1.0, 1.0]
    assert credit.untrained == {"side_call": 7}


@pytest.mark.parametrize("kind", ["sub_agent", "compaction"])
def test_sub_agents_and_compactions_inherit(kind: str) -> None:
    group = [make_session(1, traces([5, 7], **{kind: 1})), make_session(0, traces([5]), sample=1)]
    credit = assign_credit([group], DEFAULT)
    assert [(one.advantage, one.weight) for one in credit.examples] == [(1.0, 0.5), (1.0, 0.5), (-1.0, 1.0)]


def test_a_kind_can_be_given_another_weight() -> None:
    settings = CreditSettings(kind_weights={"side_call": 3.0})
    assert shares(traces([5, 5], side_call=1), settings) == [0.25, 0.75]
    assert settings.kind_weight("compaction") == 1.0


def test_a_trace_without_sampled_tokens_takes_no_share() -> None:
    empty = make_trace([(4, False)])
    assert shares([empty, *traces([2])], DEFAULT) == [0.0, 1.0]
    assert shares([empty], DEFAULT) == [0.0]


def test_zero_variance_groups_are_counted_and_stay_in_the_denominators() -> None:
    credit = assign_credit([make_group([1, 1, 1]), make_group([0, 1, 1], seed=1)], DEFAULT)
    assert (credit.groups, credit.zero_variance_groups, credit.sessions) == (2, 1, 6)
    assert len(credit.examples) == 3
    assert credit.token_mass == 6 * 7
    assert credit.untrained == {"zero_advantage": 21}


@pytest.mark.parametrize("size", [0, 1])
def test_a_group_too_small_to_compare_gives_no_gradient(size: int) -> None:
    credit = assign_credit([make_group([1] * size)], DEFAULT)
    assert not credit.examples
    assert credit.sessions == size


def test_cancelled_masked_and_empty_sessions_take_no_part() -> None:
    group = make_group([0, 1])
    group.append(make_session(9, traces([5]), sample=2, status=SessionStatus.CANCELLED))
    group.append(make_session(9, [make_trace([(6, False)])], sample=3, dropped={"partial_run": 6}))
    group.append(make_session(9, sample=4, status=SessionStatus.ERROR))
    credit = assign_credit([group], DEFAULT)
    assert [one.advantage for one in credit.examples] == [-1.0, 1.0]
    assert credit.excluded == {"session_cancelled": 1, "session_masked": 1, "session_without_tokens": 1}
    assert credit.untrained == {"session_cancelled": 5}
    assert credit.sessions == 2


def test_masked_sessions_may_count_in_the_baseline() -> None:
    group = [*make_group([1]), make_session(0, [make_trace([(6, False)])], sample=2, dropped={"partial_run": 6})]
    credit = assign_credit([group], CreditSettings(scale="none", baseline_of_masked=True))
    assert [one.advantage for one in credit.examples] == [1.0]


@pytest.mark.parametrize(("exclude", "examples"), [(frozenset(), 2), (frozenset({SessionStatus.ERROR}), 0)])
def test_a_setting_says_which_endings_take_part(exclude: frozenset[SessionStatus], examples: int) -> None:
    group = [*make_group([1]), make_session(0, traces([5]), sample=2, status=SessionStatus.ERROR)]
    assert len(assign_credit([group], CreditSettings(exclude=exclude)).examples) == examples


def test_a_hook_scores_traces_by_themselves() -> None:
    def score(session: SessionResult, trace: Trace) -> float | None:
        return -1.0 if trace.kind == "sub_agent" else None

    group = [make_session(1, traces([5, 7], sub_agent=1)), make_session(0, traces([5]), sample=1)]
    credit = assign_credit([group], DEFAULT, score)
    assert [one.advantage for one in credit.examples] == [1.0, -1.0, -1.0]


def test_traces_may_answer_for_their_own_reward() -> None:
    own = traces([5, 5])
    own[1].reward = 0.25
    group = [make_session(1, own), make_session(0, traces([5]), sample=1)]
    credit = assign_credit([group], CreditSettings(scale="none", trace_rewards="trace"))
    assert [one.advantage for one in credit.examples] == [1.0, 0.25, -1.0]


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=4), max_size=4), st.booleans())
def test_every_sampled_token_is_trained_on_or_counted(rewards: list[list[int]], failing: bool) -> None:
    groups = [make_group(list(map(float, some)), seed=index) for index, some in enumerate(rewards)]
    if failing and groups:
        groups[0][0].status = SessionStatus.CANCELLED
    credit = assign_credit(groups, DEFAULT)
    sampled = sum(trace.trained_tokens for group in groups for one in group for trace in one.traces)
    assert sampled == credit.trained_tokens + credit.untrained.total()


def test_a_reward_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(TrainingError, match="session t-1: reward=nan"):
        assign_credit([make_group([0, float("nan")])], DEFAULT)
