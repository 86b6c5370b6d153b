# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which weights the policy samples with, and the gate that holds generations back while they are replaced.

An engine that says which weights each token is of is believed. Of another, what was announced here is all that is
known: an answer that began before an announcement and ended after it is of nobody knows which.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from nemo_gym_polar.gateway.traffic import Traffic
from nemo_gym_polar.tokens import VersionSpan

Spans = tuple[VersionSpan, ...]


class NotDrainedError(Exception):
    """Generations were still in flight when the time for a pause was up. They go on, and so do new ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Announced:
    """What was said of the weights last. Each announcement is a new one, so that two can be told apart by identity."""

    version: str | None = None


class Weights:
    def __init__(self) -> None:
        self.announced = Announced()
        self.reported: str | None = None
        self.generations = Traffic()
        self._open = asyncio.Event()
        self._open.set()

    @property
    def paused(self) -> bool:
        return not self._open.is_set()

    @property
    def version(self) -> str | None:
        """What was announced, else what the engine named last; None where nobody said."""
        return self.announced.version if self.announced.version is not None else self.reported

    async def opened(self) -> None:
        """Wait until generations may begin."""
        while self.paused:
            await self._open.wait()

    async def pause(self, seconds: float) -> None:
        """Let no generation begin, and wait until none is in flight. Raises `NotDrainedError`, and goes on, if that
        takes longer than `seconds`."""
        self._open.clear()
        drained = await self.generations.idle(seconds)
        if not drained:
            left = f"{self.generations.number} generations are still in flight after {seconds:g} s"
            self._open.set()
            raise NotDrainedError(f"{left}; give the pause more time, or update the weights in flight")
        if not self.paused:
            raise NotDrainedError("the gateway was resumed while it waited for the last generation; pause it again")

    def resume(self, version: str | None = None) -> None:
        """Let generations begin; from here on with the weights `version`, if they are others now. Without a pause
        before it this announces an update in flight."""
        if version is not None:
            self.announced = Announced(version)
        self._open.set()

    def stamp(self, spans: Spans, length: int, begun: Announced, ended: Announced) -> tuple[Spans, bool]:
        """The versions of an answer of `length` tokens; whether they are in doubt. `spans` is what the engine says."""
        if spans:
            self.reported = spans[-1].version
            return spans, False
        told = () if begun.version is None else (VersionSpan(begun.version, 0, length),)
        return told, begun is not ended
