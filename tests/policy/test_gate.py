# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest

from nemo_gym_polar.policy.gate import CHANCE, Skills, WarmStartError, measure
from tests.support.policies import small_tokenizer, wild_policy

GOOD = Skills(well_formed=0.97, right=CHANCE, ended=1.0, copied=0.8)


def test_a_good_policy_passes() -> None:
    GOOD.check()


@pytest.mark.parametrize(("skill", "value"), [("well_formed", 0.5), ("ended", 0.0), ("copied", 0.3)])
def test_what_is_too_low_is_named(skill: str, value: float) -> None:
    with pytest.raises(WarmStartError, match=f"{skill}={value:.2f} is below .*; raise policy.steps"):
        replace(GOOD, **{skill: value}).check()


def test_a_policy_that_knows_the_choice_already_is_refused() -> None:
    with pytest.raises(WarmStartError, match=r"right=0\.60, but chance is 0\.125"):
        replace(GOOD, right=0.6).check()


def test_a_policy_that_was_taught_nothing_can_do_nothing() -> None:
    tokenizer = small_tokenizer()
    skills = measure(wild_policy(tokenizer, seed=0), tokenizer, count=4)
    assert skills == Skills(0.0, 0.0, 0.0, 0.0)
    with pytest.raises(WarmStartError):
        skills.check()
