# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The policy objective over the trained tokens of a batch. All tensors are [N], one entry per token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from nemo_gym_polar.training.settings import LossSettings


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """What the loss needs to know of N tokens besides their present log-probabilities.

    `behaviour_N` is what the engine reported when it sampled them, `proximal_N` what the trainer's weights said at the
    start of the step, `reference_N` (only with a KL price) what the initial policy says. `weights_N` is each token's
    part of the batch: normalisation is done when these are made.
    """

    advantages_N: torch.Tensor
    weights_N: torch.Tensor
    behaviour_N: torch.Tensor
    proximal_N: torch.Tensor
    reference_N: torch.Tensor | None = None

    def __getitem__(self, places: torch.Tensor) -> TokenBatch:
        reference = None if self.reference_N is None else self.reference_N[places]
        return TokenBatch(
            self.advantages_N[places],
            self.weights_N[places],
            self.behaviour_N[places],
            self.proximal_N[places],
            reference,
        )


def policy_loss(
    logprobs_N: torch.Tensor, entropy_N: torch.Tensor, batch: TokenBatch, settings: LossSettings
) -> torch.Tensor:
    """The scalar to minimise: the weighted sum over tokens of

        -v min(r A, clip(r, 1 - low, 1 + high) A) + beta k3 - eta H

    r = exp(logprob - proximal) is PPO's ratio (Schulman et al. 2017, arXiv:1707.06347, eq. 7) with bounds of their own
    for each side (DAPO, Yu et al. 2025, arXiv:2503.14476). With a dual clip c, the objective of a token with A < 0 is
    no less than c A (Ye et al. 2020, arXiv:1912.09729). v is the truncated importance weight between the trainer's and
    the engine's probabilities, k3 the KL estimate against the initial policy, and H the entropy of the distribution
    that the token was drawn from (Mnih et al. 2016, arXiv:1602.01783).
    """
    objective = importance_weights(batch, settings) * clipped_objective(logprobs_N, batch, settings)
    if settings.kl_weight and batch.reference_N is not None:
        objective = objective - settings.kl_weight * k3(logprobs_N, batch.reference_N)
    if settings.entropy_weight:
        objective = objective + settings.entropy_weight * entropy_N
    return -(batch.weights_N * objective).sum()


def clipped_objective(logprobs_N: torch.Tensor, batch: TokenBatch, settings: LossSettings) -> torch.Tensor:
    advantages = batch.advantages_N
    ratio = (logprobs_N - batch.proximal_N).exp()
    bounded = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
    objective = torch.minimum(ratio * advantages, bounded * advantages)
    if settings.dual_clip is None:
        return objective
    return torch.where(advantages < 0, torch.maximum(objective, settings.dual_clip * advantages), objective)


def importance_weights(batch: TokenBatch, settings: LossSettings) -> torch.Tensor:
    """min(exp(proximal - behaviour), cap): what corrects for the engine computing other probabilities than the trainer.

    Truncated importance sampling, Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL
    training"; for stale tokens as in Espeholt et al. 2018 (IMPALA, arXiv:1802.01561).
    """
    if settings.tis_cap is None:
        return torch.ones_like(batch.behaviour_N)
    return (batch.proximal_N - batch.behaviour_N).exp().clamp(max=settings.tis_cap)


def k3(logprobs_N: torch.Tensor, reference_N: torch.Tensor) -> torch.Tensor:
    """KL(policy || reference) by the estimate q - log q - 1, q = reference / policy: unbiased, never negative
    (Schulman 2020, "Approximating KL divergence")."""
    log_q = reference_N - logprobs_N
    return log_q.exp() - log_q - 1


def token_weight(weight: float, trained_tokens: int, settings: LossSettings, token_mass: float, sessions: int) -> float:
    """The part in the batch of each token of a trace that is `weight` of its session.

    `token`: every token of a session of one trace counts alike (arXiv:2503.14476, eq. 8). `session`: every session
    counts alike, its tokens share that out (arXiv:2402.03300, eq. 3).
    """
    if settings.normalisation == "token":
        return weight / token_mass
    return weight / (sessions * trained_tokens)


@torch.no_grad()
def measure(
    logprobs_N: torch.Tensor, entropy_N: torch.Tensor, batch: TokenBatch, settings: LossSettings
) -> dict[str, float]:
    """Means over the tokens, except `_max` and the number of `tokens`; see `merge`.

    `logprob_error` and its maximum are |trainer - engine| in nats, `token_mult_prob_error` is exp of it, the name that
    NeMo RL gives it.
    """
    ratio = (logprobs_N - batch.proximal_N).exp()
    error = (batch.proximal_N - batch.behaviour_N).abs()
    weights = importance_weights(batch, settings)
    means = {
        "ratio": ratio,
        "clip_fraction": ((ratio < 1 - settings.clip_low) & (batch.advantages_N < 0))
        | ((ratio > 1 + settings.clip_high) & (batch.advantages_N > 0)),
        "approx_kl": k3(batch.proximal_N, logprobs_N),
        "entropy": entropy_N,
        "tis_weight": weights,
        "logprob_error": error,
        "token_mult_prob_error": error.exp(),
    }
    if batch.reference_N is not None:
        means["kl_reference"] = k3(logprobs_N, batch.reference_N)
    measured = {name: float(values.double().mean()) for name, values in means.items()}
    return measured | {"logprob_error_max": float(error.max()), "tokens": float(len(ratio))}


def merge(parts: list[Mapping[str, float]] | list[dict[str, float]]) -> dict[str, float]:
    """One measurement from those of several microbatches."""
    tokens = sum(part["tokens"] for part in parts)
    merged = {name: sum(part[name] * part["tokens"] for part in parts) / tokens for name in parts[0]}
    return merged | {"logprob_error_max": max(part["logprob_error_max"] for part in parts), "tokens": tokens}
