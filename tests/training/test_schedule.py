# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.training.schedule import learning_rate
from nemo_gym_polar.training.settings import OptimizerSettings


def test_rises_then_falls_to_the_final_fraction() -> None:
    settings = OptimizerSettings(lr=1.0, warmup_steps=3, final_fraction=0.2)
    rates = [learning_rate(step, 8, settings) for step in range(9)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1.0, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_constant_stays() -> None:
    settings = OptimizerSettings(lr=2.0, warmup_steps=0, schedule="constant")
    assert {learning_rate(step, 5, settings) for step in range(9)} == {2.0}


@given(st.integers(0, 30), st.integers(1, 30), st.floats(0, 1), st.integers(0, 60))
def test_never_outside_its_bounds(warmup: int, falling: int, fraction: float, step: int) -> None:
    settings = OptimizerSettings(lr=1.0, warmup_steps=warmup, final_fraction=fraction)
    rate = learning_rate(step, warmup + falling, settings)
    assert min(fraction, 1 / (warmup + 1)) - 1e-12 <= rate <= 1.0


def test_a_run_shorter_than_its_warm_up_only_rises() -> None:
    settings = OptimizerSettings(lr=1.0, warmup_steps=3)
    assert [learning_rate(step, 2, settings) for step in range(2)] == [0.25, 0.5]


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        OptimizerSettings.model_validate({"learning_rate": 1})
