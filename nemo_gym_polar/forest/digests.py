# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Digests of tokens: equal exactly when the tokens are."""

from __future__ import annotations

from nemo_gym_polar.forest.canonical import digest_bytes
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.tokens import Float32, Int32


def turn_digest(above: bytes, shared: int, delta: Int32, sampled: Int32, logprobs: Float32) -> bytes:
    """A turn's digest, chained to its parent's (`above`): a changed token shows in every turn after it."""
    size = shared.to_bytes(8, "little")
    return digest_bytes(above, size, delta.tobytes(), sampled.tobytes(), logprobs.tobytes())


def trace_digest(trace: Trace) -> str:
    """A hex digest of what is trained on: ids, mask and log-probabilities."""
    return digest_bytes(trace.token_ids.tobytes(), trace.loss_mask.tobytes(), trace.logprobs.tobytes()).hex()
