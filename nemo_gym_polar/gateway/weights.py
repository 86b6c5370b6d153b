# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which weights the policy samples with, and the gate that holds generations back while they are replaced.

An engine that says which weights each token is of is believed. One that names the weights of a whole answer is, too,
unless it named others when the answer began, or an announcement fell in between: nobody knows then where they changed.
Of an engine that says nothing, what was announced is all that is known.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from nemo_gym_polar.engines.base import Sampled
from nemo_gym_polar.gateway.traffic import Traffic
from nemo_gym_polar.tokens import VersionSpan

Spans = tuple[VersionSpan, ...]


class NotDrainedError(Exception):
    """Generations were still in flight when the time for a pause was up. They go on, and so do new ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Announced:
    """What was said of the weights last. Each announcement is a new one, so that two can be told apart by identity."""

    version: str | None = None


class Moment(NamedTuple):
    """What was known at the beginning or the end of a generation: the last announcement, and the engine's last word."""

    announced: Announced
    reported: str | None


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

    @property
    def moment(self) -> Moment:
        return Moment(self.announced, self.reported)

    def stamp(self, sampled: Sampled, begun: Moment, ended: Moment) -> tuple[Spans, bool]:
        """The versions of an answer; whether they are in doubt."""
        announced, spans = begun.announced, sampled.versions
        interrupted = announced is not ended.announced
        if not spans:
            length = len(sampled.token_ids)
            return () if announced.version is None else (VersionSpan(announced.version, 0, length),), interrupted
        self.reported = name = spans[-1].version
        if sampled.versions_by_token:
            return spans, False
        unexpected = begun.reported not in (None, name) and announced.version != name
        return spans, interrupted or unexpected
