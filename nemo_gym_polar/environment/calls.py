# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The model calls that a trace is made of, as the forest knows them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from nemo_gym_polar.chat import Message
from nemo_gym_polar.environment.responses import Call
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Turn


def calls_of(forest: Forest, trace: Trace) -> list[Call]:
    """One call per turn of the trace's chain; the first one's context (system line, task) is the row's own input.

    A trace that a builder cut at a length ends within its last call.
    """
    chain = [turn for turn in forest.chain(max(trace.turns)) if turn.context_length < len(trace)]
    return [_call(forest, trace, chain[0], ()), *_continued(forest, trace, chain)]


def _continued(forest: Forest, trace: Trace, chain: list[Turn]) -> Iterator[Call]:
    for before, turn in pairwise(chain):
        known = len(forest.conversation(before).messages) + 1  # what was asked before, and its answer
        yield _call(forest, trace, turn, forest.conversation(turn).messages[known:])


def _call(forest: Forest, trace: Trace, turn: Turn, context: tuple[Message, ...]) -> Call:
    answer = forest.answer(turn) or Message("assistant", ())
    return Call(answer, turn.context_length, min(turn.length, len(trace)), context)
