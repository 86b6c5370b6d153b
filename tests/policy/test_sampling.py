# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

from nemo_gym_polar.policy.sampling import Choice, Draw, SamplingParams, describe, sample, truncate

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0, -2.0])
FINITE = arrays(np.float32, (4, 9), elements=st.floats(-30, 30, width=32))


def draw_of(seed: int = 0, **fields: object) -> Draw:
    params = SamplingParams(max_tokens=1, seed=seed, **fields)  # type: ignore[arg-type]  # fields of many types
    return Draw(params, np.random.default_rng(seed))


def draw_many(logits: Tensor, count: int = 8_000, **fields: object) -> tuple[Counter[int], dict[int, float]]:
    """Counts of tokens drawn by one request, and the logprob each was reported with."""
    shared = draw_of(**fields)
    choices = sample(logits.repeat(count, 1), [shared] * count)
    return Counter(choice.token for choice in choices), {choice.token: choice.logprob for choice in choices}


@pytest.mark.parametrize(
    "fields",
    [{}, {"temperature": 0.5}, {"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.8}, {"top_k": 4, "temperature": 1.5}],
)
def test_tokens_come_as_often_as_their_logprob_says(fields: dict[str, float]) -> None:
    counts, logprobs = draw_many(LOGITS, **fields)
    for token, logprob in logprobs.items():
        assert counts[token] / counts.total() == pytest.approx(np.exp(logprob), abs=0.025)
    assert sum(np.exp(list(logprobs.values()))) == pytest.approx(1.0, abs=2e-2)


def test_logprobs_are_those_of_the_tempered_distribution() -> None:
    _, logprobs = draw_many(LOGITS, temperature=0.5)
    expected = torch.log_softmax(LOGITS / 0.5, -1)
    assert all(logprob == pytest.approx(float(expected[token]), abs=1e-5) for token, logprob in logprobs.items())


def test_greedy_takes_the_likeliest_and_reports_the_model() -> None:
    choice = sample(LOGITS[None].clone(), [draw_of(temperature=0.0)])[0]
    assert choice == Choice(0, pytest.approx(float(torch.log_softmax(LOGITS, -1)[0])))


@given(FINITE)
def test_rows_are_independent(logits: np.ndarray) -> None:
    """A row's choice does not depend on what other rows ask for."""
    asks = [{}, {"temperature": 0.0}, {"temperature": 0.7, "top_p": 0.5}, {"top_k": 2}]
    together = sample(torch.tensor(logits), [draw_of(row, **ask) for row, ask in enumerate(asks)])
    alone = [sample(torch.tensor(logits[row : row + 1]), [draw_of(row, **ask)])[0] for row, ask in enumerate(asks)]
    assert [choice.token for choice in together] == [choice.token for choice in alone]
    assert [choice.logprob for choice in together] == pytest.approx([choice.logprob for choice in alone], abs=1e-5)


@given(arrays(np.float32, 9, elements=st.floats(-30, 30, width=32)), st.integers(0, 9), st.floats(0.01, 1.0))
def test_truncation_keeps_the_smallest_set(logits: np.ndarray, top_k: int, top_p: float) -> None:
    kept = torch.isfinite(truncate(torch.tensor(logits), top_k, top_p)).numpy()
    order = np.argsort(-logits, kind="stable")
    if top_k:
        order = order[:top_k]
    chances = torch.tensor(logits[order]).softmax(-1).numpy()
    assert 1 <= kept.sum() <= len(order)
    assert kept[order[: kept.sum()]].all()
    assert chances[: kept.sum() - 1].sum() < top_p + 1e-6
    assert kept.sum() == len(order) or chances[: kept.sum()].sum() >= top_p - 1e-6


def test_impossible_tokens_are_never_drawn() -> None:
    logits = torch.full((5,), -torch.inf)
    logits[2] = 0.0
    counts, logprobs = draw_many(logits)
    assert set(counts) == {2}
    assert logprobs[2] == 0.0


def test_banned_tokens_are_never_drawn_and_the_rest_is_renormalised() -> None:
    draw = draw_of()
    draw.banned = (0, 1)
    choices = sample(LOGITS.repeat(1000, 1), [draw] * 1000)
    expected = torch.log_softmax(LOGITS[2:], -1)
    assert {choice.token for choice in choices} == {2, 3, 4}
    assert all(choice.logprob == pytest.approx(float(expected[choice.token - 2]), abs=1e-5) for choice in choices)


def test_a_seed_decides_the_draws() -> None:
    def drawn(seed: int) -> list[int]:
        draw = draw_of(seed)
        return [sample(LOGITS[None].clone(), [draw])[0].token for _ in range(50)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_the_likeliest_tokens_are_reported_with_the_rank_of_the_chosen() -> None:
    logprobs = torch.log_softmax(LOGITS, -1)[None]
    choice = describe(logprobs, torch.tensor([3]), [2])[0]
    assert choice.rank == 4
    assert [token for token, _ in choice.top] == [0, 1]
    assert choice.top[0][1] == pytest.approx(float(logprobs[0, 0]))


def test_a_nan_is_reported_as_one() -> None:
    choice = sample(torch.full((1, 5), torch.nan), [draw_of()])[0]
    assert np.isnan(choice.logprob)
