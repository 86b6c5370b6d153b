# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of trained tokens, from the forward pass of any `transformers` causal language model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from nemo_gym_polar.training.packing import Microbatch


def token_logprobs(
    model: PreTrainedModel, batch: Microbatch, *, temperature: float = 1.0, entropy_gradient: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The log-probability [N] of each trained token and the entropy [N] of the distribution it is from, in nats.

    Logits are made only where a token is predicted, and taken in float32 whatever the model computes in.
    """
    # A cache would switch off the recognition of packed sequences.
    with _predict_only_at(model, batch.predicting_N):
        output = model(input_ids=batch.input_ids, position_ids=batch.position_ids, use_cache=False)
    logits_NV = output.logits.squeeze(0).float()
    if temperature != 1.0:
        logits_NV = logits_NV / temperature
    logprobs_NV = functional.log_softmax(logits_NV, dim=-1)
    logprobs_N = logprobs_NV.gather(-1, batch.targets_N[:, None]).squeeze(-1)
    return logprobs_N, _entropy(logprobs_NV if entropy_gradient else logprobs_NV.detach())


def _entropy(logprobs_NV: torch.Tensor) -> torch.Tensor:
    return -(logprobs_NV.exp() * logprobs_NV).sum(-1)


@contextmanager
def _predict_only_at(model: PreTrainedModel, places_N: torch.Tensor) -> Iterator[None]:
    """Let the model's own head, and what follows it, see hidden states [B, T, H] only at `places_N`, as [1, N, H]."""

    def select(_head: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        hidden = inputs[0]
        return (hidden.reshape(-1, hidden.shape[-1])[places_N][None], *inputs[1:])

    head = cast("nn.Module", model.get_output_embeddings())  # type: ignore[no-untyped-call]  # not annotated there
    hook = head.register_forward_pre_hook(select)
    try:
        yield
    finally:
        hook.remove()
