# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How much one session may still ask for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from nemo_gym_polar.dialects.base import CallError, WhenExhausted

BudgetName = Literal["turns", "generated_tokens", "context_tokens", "read_tokens", "seconds"]

# Not in the words that providers use for a context that is too long: harnesses then make room and ask again, forever.
WORDS: dict[BudgetName, str] = {
    "turns": "This session has used its {limit} turns.",
    "generated_tokens": "This session has used its {limit} generated tokens.",
    "context_tokens": "This session has ended: one call may read {limit} tokens, and this one would read {used}.",
    "read_tokens": "This session has used the {limit} tokens that its calls may read.",
    "seconds": "This session's deadline has passed.",
}


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Which budget ran out, and how far: `used` is what the session has used, or would have with one more call."""

    budget: BudgetName
    limit: float
    used: float

    @property
    def message(self) -> str:
        return WORDS[self.budget].format(limit=f"{self.limit:.0f}", used=f"{self.used:.0f}")

    @property
    def short(self) -> str:
        """Like `50 turns`."""
        return f"{self.limit:.0f} {self.budget.replace('_', ' ')}"

    def plain(self) -> dict[str, str | float]:
        over = round(self.used - self.limit, 3)
        return {"budget": self.budget, "limit": round(self.limit, 3), "used": round(self.used, 3), "over": over}


class BudgetError(CallError):
    """A call that the session's budget does not allow."""

    def __init__(self, exhausted: Exhausted) -> None:
        super().__init__("budget", exhausted.message)
        self.exhausted = exhausted


@dataclass(slots=True)
class Budget:
    """Limits of a session; None means no limit. `deadline` is in seconds of `time.monotonic()`.

    `max_tokens` bounds what is generated, `max_context` what one call may read, `max_read` what all calls together
    may. A call in flight counts as a turn from its start, so parallel calls can't overdraw turns; tokens are known
    only at a call's end, so that calls in flight together may overdraw those, once.
    """

    max_turns: int | None = None
    max_tokens: int | None = None
    deadline: float | None = None
    max_context: int | None = None
    max_read: int | None = None
    when_exhausted: WhenExhausted = "error"
    turns: int = 0
    tokens: int = 0
    read: int = 0
    began: float = field(default_factory=time.monotonic)
    exhausted: Exhausted | None = None
    """The first budget that a call was refused for."""

    def admit(self, turns: int = 1) -> None:
        """Count more turns; raises `BudgetError` when there are not as many left."""
        if self.max_turns is not None and self.turns + turns > self.max_turns:
            raise BudgetError(Exhausted("turns", self.max_turns, self.turns + turns))
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise BudgetError(Exhausted("generated_tokens", self.max_tokens, self.tokens))
        if self.deadline is not None and self.deadline <= time.monotonic():
            raise self.out_of_time()
        self.turns += turns

    def admit_context(self, length: int) -> None:
        """Raises `BudgetError` for a context that is longer than one may be, or than all may be from here on."""
        if self.max_context is not None and length > self.max_context:
            raise BudgetError(Exhausted("context_tokens", self.max_context, length))
        if self.max_read is not None and self.read + length > self.max_read:
            raise BudgetError(Exhausted("read_tokens", self.max_read, self.read + length))

    @property
    def bounds_contexts(self) -> bool:
        return self.max_context is not None or self.max_read is not None

    def refund(self, turns: int = 1) -> None:
        """A call that gave nothing is not a turn."""
        self.turns -= turns

    @property
    def tokens_left(self) -> int | None:
        return None if self.max_tokens is None else max(0, self.max_tokens - self.tokens)

    @property
    def seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def out_of_time(self) -> BudgetError:
        limit = max(0.0, (self.deadline or self.began) - self.began)
        return BudgetError(Exhausted("seconds", limit, time.monotonic() - self.began))
