# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How much one session may still ask for."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nemo_gym_polar.dialects.base import CallError


@dataclass(slots=True)
class Budget:
    """Limits of a session; None means no limit. `deadline` is in seconds of `time.monotonic()`.

    A call in flight counts as a turn from its start, so parallel calls can't overdraw.
    """

    max_turns: int | None = None
    max_tokens: int | None = None
    deadline: float | None = None
    turns: int = 0
    tokens: int = 0

    def admit(self, turns: int = 1) -> None:
        """Count more turns; raises `CallError` when there are not as many left."""
        if self.max_turns is not None and self.turns + turns > self.max_turns:
            raise CallError("budget", f"This session has used its {self.max_turns} turns.")
        if self.tokens_left == 0:
            raise CallError("budget", f"This session has used its {self.max_tokens} generated tokens.")
        if self.seconds_left is not None and self.seconds_left <= 0:
            raise out_of_time()
        self.turns += turns

    def refund(self, turns: int = 1) -> None:
        """A call that gave nothing is not a turn."""
        self.turns -= turns

    @property
    def tokens_left(self) -> int | None:
        return None if self.max_tokens is None else max(0, self.max_tokens - self.tokens)

    @property
    def seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()


def out_of_time() -> CallError:
    return CallError("budget", "This session's deadline has passed.")
