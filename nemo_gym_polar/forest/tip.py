# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The sequence of the turn that most likely continues, at hand in one piece."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nemo_gym_polar.forest.turn import Edge, Turn
from nemo_gym_polar.tokens import Int32

_ROOM = 1.5


class Tip:
    """The tokens of turn `turn`, in a buffer that grows with its chain, so that a call costs only its new tokens.

    What was handed out stays as it is: the buffer is only ever written beyond the tokens that it holds.
    """

    def __init__(self) -> None:
        self.turn = -1
        self._buffer = np.empty(0, np.int32)
        self._length = 0

    @property
    def tokens(self) -> Int32:
        view = self._buffer[: self._length]
        view.flags.writeable = False
        return view

    def advance(self, turn: Turn, gather: Callable[[int], Int32]) -> None:
        """Hold `turn`'s tokens from now on; `gather` finds them if the turn doesn't continue the present one."""
        if turn.edge is Edge.CONTINUE and turn.parent == self.turn and turn.length <= len(self._buffer):
            new = [turn.delta, turn.sampled]
        else:
            new = [gather(turn.index)]
            self._buffer, self._length = np.empty(int(turn.length * _ROOM), np.int32), 0
        for tokens in new:
            self._buffer[self._length : self._length + len(tokens)] = tokens
            self._length += len(tokens)
        self.turn = turn.index
