# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing is quadratic: what a forest keeps and writes grows with its new tokens only."""

from __future__ import annotations

import tracemalloc

import numpy as np

from nemo_gym_polar.chat import Conversation, Message
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.record import TurnCodec
from nemo_gym_polar.forest.turn import Generation
from nemo_gym_polar.tokens import VersionSpan
from tests.forest.world import SHELL, assistant, call, result, system, user

START, SAMPLED, OBSERVED = 2000, 150, 250  # tokens


class Growing:
    """A session that grows as agents' sessions do, and what it cost."""

    def __init__(self, turns: int) -> None:
        self.forest = Forest("s")
        self.written = 0
        self._codec = TurnCodec(self.forest)
        self._random = np.random.default_rng(0)
        self._tokens = self.ids(START)
        self._history: list[Message] = [system("You are an agent."), user("Fix the bug.")]
        for at in range(turns):
            self.turn(at)

    def turn(self, at: int) -> None:
        answer = assistant("words " * 100, call(f"c{at}"))
        generation = Generation(
            self._tokens,
            self.ids(SAMPLED),
            -self._random.random(SAMPLED).astype(np.float32),
            answer,
            versions=(VersionSpan("0", 0, SAMPLED),),
        )
        match = self.forest.match(Conversation(tuple(self._history), (SHELL,)))
        self.written += len(self._codec.encode(self.forest.append(match, generation)))
        self._tokens = np.concatenate((self._tokens, generation.sampled, self.ids(OBSERVED)))
        self._history += [answer, result(f"c{at}", "lines of output " * 60)]

    def ids(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return self._random.integers(0, 150_000, count).astype(np.int32)

    @property
    def unique_tokens(self) -> int:
        return self.forest[len(self.forest) - 1].length


def test_stored_tokens_are_the_unique_ones() -> None:
    forest = Growing(100).forest
    assert sum(len(turn.delta) + len(turn.sampled) for turn in forest.turns) == forest[99].length
    assert len(forest.tree.nodes) == 1 + 2 + 99 * 2 + 1


def test_six_bytes_a_token_on_disk() -> None:
    for turns in (20, 200):
        session = Growing(turns)
        assert session.written / session.unique_tokens < 6


def test_five_kilobytes_a_turn_in_memory() -> None:
    """Besides the arrays, and with the text of the messages, which the forest alone keeps."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    forest = Growing(200).forest
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    arrays = sum(turn.delta.nbytes + turn.sampled.nbytes + turn.logprobs.nbytes for turn in forest.turns)
    newest = 1.5 * forest.tokens(199).nbytes  # one sequence in one piece
    assert (kept - arrays - newest) / 200 < 5000


def test_prefix_merging_is_one_copy_of_the_tokens() -> None:
    forest = Growing(200).forest
    made = build(forest)
    assert [len(trace) for trace in made.traces] == [forest[199].length]
    assert made.trained_tokens == 200 * SAMPLED
