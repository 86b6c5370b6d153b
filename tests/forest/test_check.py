# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine's answer that can't be trained on is refused, loudly, and leaves the forest as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nemo_gym_polar.chat import Conversation
from nemo_gym_polar.forest.errors import (
    LengthMismatchError,
    LogprobError,
    MissingTokensError,
    TokenError,
    TokenIdError,
    VersionSpanError,
)
from nemo_gym_polar.forest.turn import Generation, Status
from nemo_gym_polar.tokens import VersionSpan
from tests.forest.world import World, assistant, user

EMPTY = np.empty(0, np.int32)


def ids(*values: int) -> Any:
    return np.array(values, np.int32)


def good() -> Generation:
    return Generation(ids(1, 2), ids(3, 4), np.array([-0.5, -0.1], np.float32), assistant("hi"))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sampled": EMPTY, "logprobs": np.empty(0, np.float32)}, MissingTokensError, "no sampled token ids"),
        ({"context": EMPTY}, MissingTokensError, "no context token ids.*return_token_ids"),
        ({"sampled": ids(3)}, LengthMismatchError, "1 sampled ids but 2 logprobs"),
        ({"logprobs": np.array([-0.5, np.nan], np.float32)}, LogprobError, r"logprobs\[1\] is nan"),
        ({"logprobs": np.array([-np.inf, -1], np.float32)}, LogprobError, r"logprobs\[0\] is -inf"),
        ({"logprobs": np.array([0.5, -1], np.float32)}, LogprobError, r"logprobs\[0\] is 0.5"),
        ({"logprobs": np.array([-0.5, -0.1])}, LogprobError, "float64"),
        ({"sampled": np.array([3, 4])}, TokenIdError, "sampled must be .* not int64"),
        ({"context": ids(-1)}, TokenIdError, "negative token id -1"),
        ({"versions": (VersionSpan("0", 0, 1),)}, VersionSpanError, r"\[0, 1\) must cover the 2"),
        ({"versions": (VersionSpan("0", 0, 2), VersionSpan("1", 1, 2))}, VersionSpanError, "gap or overlap"),
        ({"side": {"experts": np.zeros((5, 2), np.int16)}}, LengthMismatchError, "experts has 5 rows for 4 tokens"),
        ({"side": {"experts": np.zeros((4, 2), np.uint8)}}, TokenIdError, "experts is of uint8; give signed integers"),
    ],
)
def test_a_bad_answer_is_refused(change: dict[str, Any], error: type[TokenError], message: str) -> None:
    world = World()
    match = world.forest.match(Conversation((user("hi"),)))
    with pytest.raises(error, match=message) as caught:
        world.forest.append(match, replace(good(), **change))
    assert isinstance(caught.value, ValueError)
    assert (len(world.forest), len(world.forest.tree.nodes)) == (0, 0)
    world.forest.append(match, good())


def test_a_certainty_may_round_to_just_above_zero() -> None:
    world = World()
    certain = replace(good(), logprobs=np.array([1e-7, 0.0], np.float32))
    assert len(world.forest.append(world.match([user("hi")]), certain).sampled) == 2


@pytest.mark.parametrize("status", [Status.FAILED, Status.PARTIAL])
def test_a_call_that_gave_nothing_is_kept_as_such(status: Status) -> None:
    nothing = replace(good(), context=EMPTY, sampled=EMPTY, logprobs=np.empty(0, np.float32), status=status)
    assert World().forest.append(World().match([user("hi")]), nothing).status is status


def test_the_forest_keeps_its_own_copy() -> None:
    world = World()
    generation = good()
    turn = world.forest.append(world.match([user("hi")]), generation)
    generation.sampled[0] = 99
    assert turn.sampled[0] == 3
    with pytest.raises(ValueError, match="read-only"):
        turn.sampled[0] = 7
