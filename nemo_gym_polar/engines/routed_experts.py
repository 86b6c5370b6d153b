# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which experts of a mixture a server sent each token to, so that a trainer can send them to the same (router replay).

The wire has them as base64 of int32, layers times top-k numbers for each token. A server reads every token but the
last that it samples, so there is one row less than there are tokens; that row becomes -1, not known.
"""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nemo_gym_polar.engines import replies
from nemo_gym_polar.engines.replies import Source

EXPERTS = "routed_experts"
_FLAG = "start the server with --enable-return-routed-experts, or leave out engine.routed_experts"


def read_experts(text: Any, width: int, length: int, known: int, source: Source) -> NDArray[np.int16]:
    """[R, width] for the last R of `length` tokens. A server may leave out the first `known` tokens, or not.

    Raises `EngineError` for experts that are missing or that belong to other tokens.
    """
    if not isinstance(text, str):
        raise replies.misaligned(source, f"it told no routed experts: {_FLAG}")
    try:
        numbers = np.frombuffer(binascii.a2b_base64(text, strict_mode=True), np.int32)
    except ValueError as error:
        raise replies.misaligned(source, f"routed_experts are not base64 of int32: {error}") from error
    rows, rest = divmod(len(numbers), width)
    if rest or rows not in (length - 1, length - 1 - known):
        said = f"{len(numbers)} routed experts for {length} tokens, {known} of them known, at {width} a token"
        raise replies.misaligned(source, said + "; engine.routed_experts is the model's layers times top-k")
    if rows and (numbers.min() < 0 or numbers.max() > np.iinfo(np.int16).max):
        raise replies.misaligned(source, "routed_experts hold numbers that are no experts")
    last = np.full((1, width), -1, np.int16)
    return np.concatenate([numbers.reshape(rows, width).astype(np.int16), last])
