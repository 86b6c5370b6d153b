# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The objective against an independent formulation in float64, token by token, and against finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.training.loss import TokenBatch, k3, measure, merge, policy_loss, token_weight
from nemo_gym_polar.training.settings import LossSettings

SETTINGS = [
    LossSettings(),
    LossSettings(clip_low=0.1, clip_high=0.5, tis_cap=None),
    LossSettings(dual_clip=2.0, tis_cap=1.0),
    LossSettings(kl_weight=0.3, tis_cap=1.5),
    LossSettings(kl_weight=0.05, dual_clip=3.0, normalisation="session"),
    LossSettings(entropy_weight=0.2),
]

NONE = torch.zeros(())


def draw(tokens: int, seed: int, *, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, TokenBatch]:
    """Log-probabilities that have moved far enough for every branch of the clipping to be met."""
    generator = np.random.default_rng(seed)
    proximal = -np.abs(generator.normal(2, 1, tokens))
    columns: dict[str, Any] = {
        "advantages_N": generator.normal(0, 1, tokens),
        "weights_N": generator.uniform(0.1, 1, tokens),
        "behaviour_N": proximal + generator.normal(0, 0.6, tokens),
        "proximal_N": proximal,
        "reference_N": proximal + generator.normal(0, 0.5, tokens),
    }
    batch = TokenBatch(**{name: torch.tensor(values, dtype=dtype) for name, values in columns.items()})
    return torch.tensor(proximal + generator.normal(0, 0.6, tokens), dtype=dtype), batch


def entropies(tokens: int) -> torch.Tensor:
    return torch.linspace(0, 2, tokens, dtype=torch.float64)


def by_cases(logprobs: torch.Tensor, batch: TokenBatch, settings: LossSettings) -> float:
    """The same objective, written as the cases that clipping distinguishes rather than by min and max."""
    total = 0.0
    for index in range(len(logprobs)):
        advantage = float(batch.advantages_N[index])
        log_ratio = float(logprobs[index]) - float(batch.proximal_N[index])
        ratio = math.e**log_ratio
        if advantage >= 0:
            gain = advantage * (ratio if ratio < 1 + settings.clip_high else 1 + settings.clip_high)
        else:
            steepest = math.inf if settings.dual_clip is None else settings.dual_clip
            factor = ratio if ratio > 1 - settings.clip_low else 1 - settings.clip_low
            gain = advantage * (factor if factor < steepest else steepest)
        trust = math.e ** (float(batch.proximal_N[index]) - float(batch.behaviour_N[index]))
        if settings.tis_cap is None:
            trust = 1.0
        elif trust > settings.tis_cap:
            trust = settings.tis_cap
        price = 0.0
        if settings.kl_weight and batch.reference_N is not None:
            q = math.e ** (float(batch.reference_N[index]) - float(logprobs[index]))
            price = settings.kl_weight * (q - math.log(q) - 1)
        total -= float(batch.weights_N[index]) * (trust * gain - price)
        total -= float(batch.weights_N[index]) * settings.entropy_weight * float(entropies(len(logprobs))[index])
    return total


@pytest.mark.parametrize("settings", SETTINGS)
@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_agrees_with_the_cases(settings: LossSettings, tokens: int, seed: int) -> None:
    logprobs, batch = draw(tokens, seed)
    loss = float(policy_loss(logprobs, entropies(tokens), batch, settings))
    assert loss == pytest.approx(by_cases(logprobs, batch, settings), rel=1e-9)


@pytest.mark.parametrize("settings", SETTINGS)
def test_gradient_of_logits_agrees_with_finite_differences(settings: LossSettings) -> None:
    tokens, vocabulary, width = 24, 11, 1e-6
    generator = np.random.default_rng(5)
    targets = torch.from_numpy(generator.integers(0, vocabulary, tokens))
    _, batch = draw(tokens, 6)
    logits = torch.tensor(generator.normal(0, 1.5, (tokens, vocabulary)), requires_grad=True)

    def loss(values: torch.Tensor) -> torch.Tensor:
        chosen = torch.log_softmax(values, -1).gather(-1, targets[:, None]).squeeze(-1)
        return policy_loss(chosen, torch.distributions.Categorical(logits=values).entropy(), batch, settings)

    (gradient,) = torch.autograd.grad(loss(logits), logits)
    for row, column in zip(generator.integers(0, tokens, 80), generator.integers(0, vocabulary, 80), strict=True):
        step = torch.zeros_like(logits)
        step[row, column] = width
        slope = float((loss(logits + step) - loss(logits - step)).detach()) / (2 * width)
        assert float(gradient[row, column]) == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_on_policy_the_gradient_is_that_of_reinforce() -> None:
    _, batch = draw(30, 1)
    logprobs = batch.proximal_N.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(policy_loss(logprobs, NONE, batch, LossSettings(tis_cap=None)), logprobs)
    assert torch.allclose(gradient, -batch.weights_N * batch.advantages_N)


def test_the_importance_weight_has_no_gradient_of_its_own() -> None:
    logprobs, batch = draw(30, 2)
    proximal = batch.proximal_N.clone()
    logprobs = logprobs.requires_grad_()
    (gradient,) = torch.autograd.grad(policy_loss(logprobs, NONE, batch, LossSettings(tis_cap=3.0)), logprobs)
    weights = (proximal - batch.behaviour_N).exp().clamp(max=3.0)
    plain_logprobs = logprobs.detach().requires_grad_()
    (plain,) = torch.autograd.grad(policy_loss(plain_logprobs, NONE, batch, LossSettings(tis_cap=None)), plain_logprobs)
    assert torch.allclose(gradient, weights * plain)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_tokens_beyond_the_bounds_give_no_gradient(tokens: int, seed: int) -> None:
    logprobs, batch = draw(tokens, seed)
    settings = LossSettings(tis_cap=None)
    (gradient,) = torch.autograd.grad(policy_loss(logprobs.requires_grad_(), NONE, batch, settings), logprobs)
    ratio = (logprobs.detach() - batch.proximal_N).exp()
    beyond = ((ratio > 1 + settings.clip_high) & (batch.advantages_N > 0)) | (
        (ratio < 1 - settings.clip_low) & (batch.advantages_N < 0)
    )
    assert bool((gradient[beyond] == 0).all())
    assert bool((gradient[~beyond] != 0).all())


def test_k3_is_never_negative_and_estimates_the_divergence() -> None:
    policy = torch.log_softmax(torch.randn(1000, generator=torch.Generator().manual_seed(0)).double(), -1)
    reference = torch.log_softmax(torch.randn(1000, generator=torch.Generator().manual_seed(1)).double(), -1)
    estimates = k3(policy, reference)
    assert float(estimates.min()) >= 0
    exact = float((policy.exp() * (policy - reference)).sum())
    assert float((policy.exp() * estimates).sum()) == pytest.approx(exact)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_normalisations_give_weights_that_add_up_to_one(lengths: list[int]) -> None:
    mass = float(sum(lengths))
    for settings in (LossSettings(), LossSettings(normalisation="session")):
        total = sum(length * token_weight(1.0, length, settings, mass, len(lengths)) for length in lengths)
        assert total == pytest.approx(1)


def test_token_normalisation_weighs_tokens_and_session_normalisation_sessions_alike() -> None:
    by_token = [token_weight(1.0, length, LossSettings(), 40.0, 2) for length in (10, 30)]
    assert by_token[0] == by_token[1]
    session = LossSettings(normalisation="session")
    assert [length * token_weight(1.0, length, session, 40.0, 2) for length in (10, 30)] == [0.5, 0.5]


def test_measurements_of_parts_merge_to_those_of_the_whole() -> None:
    logprobs, batch = draw(50, 3)
    entropy = torch.linspace(0, 1, 50, dtype=torch.float64)
    whole = measure(logprobs, entropy, batch, LossSettings())
    parts = [
        measure(logprobs[places], entropy[places], batch[places], LossSettings())
        for places in (torch.arange(0, 13), torch.arange(13, 50))
    ]
    assert merge(parts) == pytest.approx(whole)


def test_what_is_measured_where_nothing_has_moved() -> None:
    _, batch = draw(20, 4)
    same = TokenBatch(batch.advantages_N, batch.weights_N, batch.proximal_N, batch.proximal_N)
    measured = measure(batch.proximal_N, torch.ones(20), same, LossSettings())
    assert measured == {
        "ratio": 1.0,
        "clip_fraction": 0.0,
        "approx_kl": 0.0,
        "entropy": 1.0,
        "tis_weight": 1.0,
        "logprob_error": 0.0,
        "token_mult_prob_error": 1.0,
        "logprob_error_max": 0.0,
        "tokens": 20.0,
    }
