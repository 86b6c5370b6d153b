# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What two builds of one session differ in: trace by trace, and turn by turn in who owns it.

A trace is known by the last turn that it owns, since at most one trace of a build owns a turn; indices move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nemo_gym_polar.forest.builders.base import Build
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Turn

FIELDS = ("kind", "turns", "shared_prefix", "finish_reason", "versions", "reward", "weight", "edge")


@dataclass(frozen=True, slots=True)
class Side:
    """A trace in one of the builds, or the part of it that a turn sampled. `tip` is the last turn owned."""

    trace: int
    tip: int
    tokens: int
    trained: int


@dataclass(frozen=True, slots=True)
class TraceChange:
    """The trace that ends at one turn; a side is None where its build has no such trace. `fields` differ."""

    left: Side | None
    right: Side | None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """The span that `turn` sampled has the loss in another trace, or on other tokens; None where no trace has it."""

    turn: int
    sampled: int
    left: Side | None
    right: Side | None


@dataclass(slots=True)
class Comparison:
    traces: list[TraceChange] = field(default_factory=list)
    owners: list[OwnerChange] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not (self.traces or self.owners)


def compare(store: TurnStore, left: Build, right: Build) -> Comparison:
    return Comparison(list(_traces(left, right)), list(_owners(store, left, right)))


def _traces(left: Build, right: Build) -> Iterator[TraceChange]:
    before, after = _by_tip(left), _by_tip(right)
    for tip in sorted(before.keys() | after.keys()):
        one, other = before.get(tip), after.get(tip)
        differing = _differing(one, other) if one and other else ()
        if differing or one is None or other is None:
            yield TraceChange(_side(one), _side(other), differing)


def _by_tip(made: Build) -> dict[int, Trace]:
    return {_tip(trace): trace for trace in made.traces}


def _tip(trace: Trace) -> int:
    return max(trace.turns, default=-1 - trace.index)


def _differing(one: Trace, other: Trace) -> tuple[str, ...]:
    arrays = ("token_ids", "loss_mask", "logprobs")
    moved = [name for name in arrays if not np.array_equal(getattr(one, name), getattr(other, name))]
    return (*moved, *(name for name in FIELDS if getattr(one, name) != getattr(other, name)))


def _side(trace: Trace | None) -> Side | None:
    return None if trace is None else Side(trace.index, _tip(trace), len(trace), trace.trained_tokens)


def _owners(store: TurnStore, left: Build, right: Build) -> Iterator[OwnerChange]:
    before, after = _owned(store, left), _owned(store, right)
    for turn in store.turns:
        one, other = before.get(turn.index), after.get(turn.index)
        if _place(one) != _place(other):
            yield OwnerChange(turn.index, len(turn.sampled), one, other)


def _place(side: Side | None) -> tuple[int, int] | None:
    return None if side is None else (side.tip, side.trained)


def _owned(store: TurnStore, made: Build) -> dict[int, Side]:
    """Turn → the trace that has a loss on what it sampled, and on how much of it."""
    owners = {}
    for trace in made.traces:
        for index in trace.turns:
            if trained := _trained(store[index], trace):
                owners[index] = Side(trace.index, _tip(trace), len(trace), trained)
    return owners


def _trained(turn: Turn, trace: Trace) -> int:
    return int(trace.loss_mask[turn.context_length : turn.length].sum())
