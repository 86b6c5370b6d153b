# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Prompt log-probabilities as vLLM gives them, and every way in which they can be something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nemo_gym_polar.engines import vllm_replies
from nemo_gym_polar.engines.base import EngineError, EngineFault
from nemo_gym_polar.engines.replies import Source

SOURCE = Source("vllm", "/v1/completions", "the reason")
TOKENS = np.array([5, 6, 7], np.int32)


def entry(token: int, logprob: Any) -> dict[str, Any]:
    return {str(token): {"logprob": logprob, "rank": 1, "decoded_token": "?"}}


def test_each_token_has_its_own_value_even_beside_likelier_ones() -> None:
    choice = {"prompt_logprobs": [None, entry(6, -0.5), entry(9, -0.1) | entry(7, -2.5)]}
    scored = vllm_replies.scored(choice, TOKENS, SOURCE)
    assert scored.dtype == np.float32
    assert scored.tolist() == [0.0, -0.5, -2.5]


@pytest.mark.parametrize(
    ("choice", "fault"),
    [
        ({}, "no_logprobs"),
        ({"prompt_logprobs": None}, "no_logprobs"),
        ({"prompt_logprobs": [None, entry(6, -0.5)]}, "misaligned"),
        ({"prompt_logprobs": [None, entry(6, -0.5), entry(8, -0.5)]}, "misaligned"),
        ({"prompt_logprobs": [None, entry(6, -0.5), None]}, "misaligned"),
        ({"prompt_logprobs": [None, entry(6, -0.5), {"7": -0.5}]}, "misaligned"),
        ({"prompt_logprobs": [None, entry(6, -0.5), entry(7, None)]}, "not_finite"),
        ({"prompt_logprobs": [None, entry(6, -0.5), entry(7, "x")]}, "malformed"),
    ],
)
def test_what_is_not_the_log_probability_of_these_tokens(choice: dict[str, Any], fault: EngineFault) -> None:
    with pytest.raises(EngineError) as caught:
        vllm_replies.scored(choice, TOKENS, SOURCE)
    assert caught.value.fault == fault
