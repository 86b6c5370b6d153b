# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.tasks.bundled import REMOVE, TOUCH
from nemo_gym_polar.tasks.wording import Wording, split_patterns

WORDINGS = st.sampled_from([TOUCH, REMOVE])


@given(WORDINGS)
def test_patterns_are_distinct_sentences_with_one_name(wording: Wording) -> None:
    patterns = wording.patterns()
    assert len(set(patterns)) == len(patterns)
    for pattern in patterns:
        assert pattern.count("{name}") == 1
        assert pattern[0].isupper()
        assert pattern.endswith(".")


@given(WORDINGS, st.integers())
def test_a_drawn_sentence_is_one_of_the_patterns(wording: Wording, seed: int) -> None:
    assert wording.draw(random.Random(seed)) in wording.patterns()


@given(WORDINGS, st.integers(), st.integers(1, 40), st.integers(1, 40))
def test_split_patterns_share_nothing(wording: Wording, seed: int, train: int, heldout: int) -> None:
    trained, held_out = split_patterns(wording, train=train, heldout=heldout, seed=seed)
    assert (len(trained), len(held_out)) == (train, heldout)
    assert not set(trained) & set(held_out)
