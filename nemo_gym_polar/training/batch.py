# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One step's examples, flattened: arrays over all M trained tokens, and the segments that predict them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nemo_gym_polar.tokens import Float32
from nemo_gym_polar.training.credit import Credit, Example
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.loss import TokenBatch, token_weight
from nemo_gym_polar.training.packing import Segment, segments
from nemo_gym_polar.training.settings import LossSettings


@dataclass(frozen=True, slots=True)
class StepBatch:
    """`pieces` holds the segments of each example; `tokens` starts with the engine's numbers as the proximal ones."""

    pieces: list[list[Segment]]
    tokens: TokenBatch

    def __len__(self) -> int:
        return len(self.tokens.advantages_N)


def flatten(credit: Credit, loss: LossSettings, reach: int | None, max_tokens: int | None) -> StepBatch:
    """Cut and flatten all examples that fit `max_tokens`; the tokens of those that don't are counted in `credit`."""
    pieces: list[list[Segment]] = []
    kept: list[Example] = []
    place = 0
    for example in credit.examples:
        trace = example.trace
        cut = list(segments(trace.token_ids, trace.loss_mask, reach, place))
        if max_tokens is not None and max(map(len, cut)) > max_tokens:
            credit.leave_out("too_long", trace.trained_tokens)
            continue
        pieces.append(cut)
        kept.append(example)
        place += trace.trained_tokens
    return StepBatch(pieces, _token_batch(kept, credit, loss))


def _token_batch(examples: Sequence[Example], credit: Credit, loss: LossSettings) -> TokenBatch:
    counts = [example.trace.trained_tokens for example in examples]
    weights = [
        token_weight(example.weight, count, loss, credit.token_mass, credit.sessions)
        for example, count in zip(examples, counts, strict=True)
    ]
    advantages = [example.advantage for example in examples]
    behaviour = torch.from_numpy(np.concatenate([np.zeros(0, np.float32), *map(_behaviour, examples)]))
    return TokenBatch(
        advantages_N=torch.from_numpy(np.repeat(np.array(advantages, np.float32), counts)),
        weights_N=torch.from_numpy(np.repeat(np.array(weights, np.float32), counts)),
        behaviour_N=behaviour,
        proximal_N=behaviour.clone(),
    )


def _behaviour(example: Example) -> Float32:
    trace = example.trace
    logprobs = trace.logprobs[trace.loss_mask]
    if not np.isfinite(logprobs).all():
        raise TrainingError(
            f"session {trace.session_id}, trace {trace.index}: a sampled token has no finite log-probability;"
            " check the engine's logprobs"
        )
    return logprobs.astype(np.float32)
