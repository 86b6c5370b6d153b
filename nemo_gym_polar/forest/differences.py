# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How far recorded log-probabilities are from those that an engine gives the same tokens afterwards.

A token that was sampled in another context than its trace says shows here, whatever digests and masks say. Only tokens
of the weights that the engine has now can be compared; the others are counted by cause.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge, Turn
from nemo_gym_polar.tokens import Bool, Float32, VersionSpan

OTHER_WEIGHTS = "other_weights"
UNKNOWN_WEIGHTS = "unknown_weights"
TOO_LONG = "too_long"
OTHER_TEMPERATURE = "other_temperature"


@dataclass(frozen=True, slots=True)
class Spread:
    """Absolute differences of one edge kind, in nats. `worst` is the turn with the largest, at its token `at`."""

    edge: Edge
    count: int
    mean: float
    p50: float
    p99: float
    max: float
    worst: int
    at: int


@dataclass(frozen=True, slots=True)
class _Piece:
    turn: int
    positions: np.ndarray[tuple[int], np.dtype[np.intp]]
    values: Float32


@dataclass(slots=True)
class Differences:
    """Grows by one trace after another. `version` is the engine's; with `any_version` all tokens are compared."""

    version: str | None
    any_version: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    _pieces: defaultdict[Edge, list[_Piece]] = field(default_factory=lambda: defaultdict(list))

    def wants(self, store: TurnStore, trace: Trace) -> bool:
        """Whether anything of a trace can be compared; if not, it is counted, and the engine need not be asked."""
        usable, fits, unknown = self._masks(store, trace)
        if not (fits & usable).any():
            self._leave_out(trace.loss_mask, usable, fits, unknown)
            return False
        return True

    def add(self, store: TurnStore, trace: Trace, scored: Float32) -> None:
        """`scored` are the engine's values for all tokens of `trace`, [T]."""
        usable, fits, unknown = self._masks(store, trace)
        self._leave_out(trace.loss_mask, usable, fits, unknown)
        for index in trace.turns:
            turn = store[index]
            places = _places(turn, usable & fits)
            if len(places):
                values = np.abs(trace.logprobs[places] - scored[places])
                self._pieces[turn.edge].append(_Piece(index, places - turn.context_length, values))

    def too_long(self, trace: Trace) -> None:
        """The engine could not read the trace and one token more."""
        self.left_out[TOO_LONG] += trace.trained_tokens

    @property
    def largest(self) -> float:
        return max((spread.max for spread in self.spreads()), default=0.0)

    def spreads(self) -> list[Spread]:
        """One for each edge kind of which something was compared, in the order of `Edge`."""
        return [_spread(edge, self._pieces[edge]) for edge in Edge if edge in self._pieces]

    def _masks(self, store: TurnStore, trace: Trace) -> tuple[Bool, Bool, Bool]:
        """Which trained tokens were sampled at temperature 1, as engines score; which tokens are of the engine's
        weights; and of which nobody knows the weights."""
        usable = trace.loss_mask & ~_heated(store, trace)
        unknown = ~_covered(trace.versions, len(trace))
        if self.any_version:
            return usable, np.ones(len(trace), np.bool_), unknown
        if self.version is None:
            return usable, np.zeros(len(trace), np.bool_), np.ones(len(trace), np.bool_)
        fits = _covered([span for span in trace.versions if span.version == self.version], len(trace))
        return usable, fits, unknown

    def _leave_out(self, loss: Bool, usable: Bool, fits: Bool, unknown: Bool) -> None:
        causes = {OTHER_TEMPERATURE: loss & ~usable, UNKNOWN_WEIGHTS: usable & ~fits & unknown}
        for cause, mask in {**causes, OTHER_WEIGHTS: usable & ~fits & ~unknown}.items():
            if count := int(mask.sum()):
                self.left_out[cause] += count


def _places(turn: Turn, wanted: Bool) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return turn.context_length + np.flatnonzero(wanted[turn.context_length : turn.length])


def _heated(store: TurnStore, trace: Trace) -> Bool:
    """Tokens whose recorded log-probabilities are those of another temperature than 1."""
    heated = np.zeros(len(trace), np.bool_)
    for turn in (store[index] for index in trace.turns):
        if turn.temperature != 1.0:
            heated[turn.context_length : turn.length] = True
    return heated


def _covered(versions: Sequence[VersionSpan], length: int) -> Bool:
    covered = np.zeros(length, np.bool_)
    for span in versions:
        covered[span.start : span.end] = True
    return covered


def _spread(edge: Edge, pieces: Sequence[_Piece]) -> Spread:
    values = np.concatenate([piece.values for piece in pieces]).astype(np.float64)
    worst = max(pieces, key=lambda piece: piece.values.max())
    p50, p99 = np.percentile(values, [50, 99])
    at = int(worst.positions[worst.values.argmax()])
    return Spread(edge, len(values), float(values.mean()), float(p50), float(p99), float(values.max()), worst.turn, at)
