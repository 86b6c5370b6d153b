# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the parts of a session take, as distributions with long tails: shared by the measured and the modelled runs."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tail:
    """Log-normal: `median` in seconds, `sigma` of the logarithm."""

    median: float
    sigma: float

    def draw(self, source: random.Random, scale: float) -> float:
        return scale * self.median * math.exp(source.gauss(0.0, self.sigma))

    @property
    def mean(self) -> float:
        return self.median * math.exp(self.sigma**2 / 2)


@dataclass(frozen=True, slots=True)
class Costs:
    """A coding session in the orders of magnitude of SWE tasks; all times are multiplied by `scale`.

    A session makes 2 or more turns, `turns` on average. A turn is a generation, then a tool that runs in the sandbox.
    """

    sandbox: Tail = Tail(6.0, 0.5)
    generation: Tail = Tail(3.0, 0.8)
    tool: Tail = Tail(1.0, 1.0)
    evaluation: Tail = Tail(15.0, 0.7)
    turns: int = 10
    scale: float = 0.1

    def draw_turns(self, source: random.Random) -> int:
        """Geometric above two."""
        stop = 1.0 / max(1, self.turns - 2)
        return 2 + int(math.log(1.0 - source.random()) / math.log(1.0 - stop)) if stop < 1 else 2
