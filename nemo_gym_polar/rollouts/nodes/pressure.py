# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How full a node's engine is, asked once a second at most."""

from __future__ import annotations

import time

from nemo_gym_polar.engines.base import ChatEngine, TokenEngine

FRESH = 1.0  # seconds


class EnginePressure:
    def __init__(self, engine: TokenEngine | ChatEngine) -> None:
        self._engine = engine
        self._known: float | None = None
        self._until = 0.0

    async def now(self) -> float | None:
        if time.monotonic() >= self._until:
            self._known = await self._engine.pressure()
            self._until = time.monotonic() + FRESH
        return self._known
