# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How fast one session may call: a harness that has gone wild asks hundreds of times a minute."""

from __future__ import annotations


class Rate:
    """`per_minute` calls in the long run, and as many at once."""

    def __init__(self, per_minute: int, now: float) -> None:
        self._most = float(per_minute)
        self._refill = per_minute / 60
        self._room = self._most
        self._at = now

    def take(self, now: float) -> float:
        """Count a call; 0, or the seconds after which to come again. `now` is in seconds and only grows."""
        self._room = min(self._most, self._room + (now - self._at) * self._refill)
        self._at = now
        if self._room < 1:
            return (1 - self._room) / self._refill
        self._room -= 1
        return 0.0
