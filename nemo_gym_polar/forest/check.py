# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What an engine's answer must fulfil before the forest takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nemo_gym_polar.forest.errors import (
    LengthMismatchError,
    LogprobError,
    MissingTokensError,
    TokenIdError,
    VersionSpanError,
)
from nemo_gym_polar.forest.turn import Generation, Status
from nemo_gym_polar.tokens import Float32, Int32, SideArrays, VersionSpan

# A float32 log-softmax may round a certainty to just above zero.
_ROUNDING = 1e-4


def check_generation(generation: Generation) -> None:
    """Raise a `TokenError` that says what is wrong with the engine's answer, and what to do about it."""
    _check_ids("context", generation.context)
    _check_ids("sampled", generation.sampled)
    if generation.status is Status.KEPT:
        _check_present(generation)
    _check_logprobs(generation.sampled, generation.logprobs)
    _check_versions(generation.versions, len(generation.sampled))
    _check_side(generation.side, len(generation.context) + len(generation.sampled))


def _check_ids(name: str, ids: NDArray[Any]) -> None:
    if ids.ndim != 1 or ids.dtype != np.int32:
        raise TokenIdError(f"{name} must be a one-dimensional int32 array, not {ids.dtype} of shape {ids.shape}")
    if len(ids) and ids.min() < 0:
        raise TokenIdError(f"{name} holds the negative token id {int(ids.min())}; token ids start at 0")


def _check_present(generation: Generation) -> None:
    for name, ids in (("context", generation.context), ("sampled", generation.sampled)):
        if not len(ids):
            raise MissingTokensError(
                f"answer {generation.response_id or '?'} came with no {name} token ids: the engine must return them "
                "(vLLM: return_token_ids; a router in between may strip them)"
            )


def _check_logprobs(sampled: Int32, logprobs: Float32) -> None:
    if len(sampled) != len(logprobs):
        raise LengthMismatchError(f"{len(sampled)} sampled ids but {len(logprobs)} logprobs; each id needs its own")
    if logprobs.ndim != 1 or logprobs.dtype != np.float32:
        raise LogprobError(f"logprobs must be a one-dimensional float32 array, not {logprobs.dtype}")
    bad = ~(np.isfinite(logprobs) & (logprobs <= _ROUNDING))
    if bad.any():
        at = int(bad.argmax())
        raise LogprobError(f"logprobs[{at}] is {logprobs[at]}; a log-probability is finite and not above 0")


def _check_versions(versions: tuple[VersionSpan, ...], length: int) -> None:
    if not versions:
        return
    ends = [0, *(span.end for span in versions)]
    starts = [*(span.start for span in versions), length]
    if ends != starts or any(span.end < span.start for span in versions):
        spans = ", ".join(f"[{span.start}, {span.end})" for span in versions)
        raise VersionSpanError(f"version spans {spans} must cover the {length} sampled tokens without gap or overlap")


def _check_side(side: SideArrays, length: int) -> None:
    for name, rows in side.items():
        if len(rows) > length:
            raise LengthMismatchError(f"side array {name} has {len(rows)} rows for {length} tokens")
        if rows.dtype.kind != "i":
            raise TokenIdError(f"side array {name} is of {rows.dtype}; give signed integers, where -1 is not known")
