# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which tasks come next: all of them in a random order, then all of them in another."""

from __future__ import annotations

import numpy as np


class TaskOrder:
    """A function of the seed and of how many were drawn, so that `drawn` is all that a checkpoint keeps."""

    def __init__(self, tasks: int, seed: int, drawn: int = 0) -> None:
        self.drawn = drawn
        self._tasks = tasks
        self._seed = seed

    def peek(self, count: int) -> list[int]:
        """The next `count`; they are drawn when `drawn` is raised."""
        return [self._at(place) for place in range(self.drawn, self.drawn + count)]

    def _at(self, place: int) -> int:
        epoch, index = divmod(place, self._tasks)
        return int(np.random.default_rng([self._seed, 2, epoch]).permutation(self._tasks)[index])
