# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Thinking comes back out of its proof, and nothing else does."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.dialects.sealed import seal, unseal


@given(st.text())
def test_what_is_sealed_comes_back_in_either_base64_alphabet(thought: str) -> None:
    token = seal(thought)
    assert unseal(token) == thought
    assert unseal(base64.urlsafe_b64encode(base64.b64decode(token)).decode()) == thought


@given(st.text())
def test_any_other_token_is_none(tail: str) -> None:
    assert unseal(tail) is None or seal("")[:8] in tail
    assert unseal(seal("")[:8] + "\u00e9" + tail) is None


@pytest.mark.parametrize("cut", [-1, -4, -8, 20, 8])
def test_a_cut_token_is_none(cut: int) -> None:
    assert unseal(seal("A thought that is long enough to be cut anywhere.")[:cut]) is None
