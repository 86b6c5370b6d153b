# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How full a node's engine is, asked once a second at most.

One that can't be reached is full: sessions that fail there at once would make its node look the emptiest of all. One
that falls silent is as full as it last said for a while: under the most load it answers last.
"""

from __future__ import annotations

import time

from nemo_gym_polar.engines.base import ChatEngine, TokenEngine

FRESH = 1.0  # seconds
BELIEVED = 30.0  # seconds
FULL = 1.0


class EnginePressure:
    """`fresh` and `believed` are how many seconds an answer is not asked for again, and counts without another one."""

    def __init__(self, engine: TokenEngine | ChatEngine, *, fresh: float = FRESH, believed: float = BELIEVED) -> None:
        self._engine = engine
        self._known: float | None = None
        self._fresh, self._believed = fresh, believed
        self._asked = self._told = -float("inf")

    async def now(self) -> float | None:
        if time.monotonic() - self._asked >= self._fresh:
            self._take(await self._engine.pressure())
        replicas = self._engine.replicas()
        return FULL if replicas and not any(replica.up for replica in replicas) else self._known

    def _take(self, told: float | None) -> None:
        self._asked = time.monotonic()
        if told is not None:
            self._told = self._asked
        if told is not None or self._asked - self._told >= self._believed:
            self._known = told
