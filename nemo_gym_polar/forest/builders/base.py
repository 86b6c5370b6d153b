# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a builder is given and what it gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Protocol, Self, get_args

from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace, TraceKind


class Rule(StrEnum):
    """What to do with the traces of a kind."""

    TRAIN = "train"
    MASK = "mask"
    """Keep the trace, with no token in the loss."""
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that every builder understands.

    `main_chain` keeps only the task's own longest chain, which is what a trainer with one sequence per rollout can
    take. `max_tokens` cuts each trace at that length; what is left is an exact causal prefix.
    """

    main_chain: bool = False
    sub_agent: Rule = Rule.TRAIN
    compaction: Rule = Rule.TRAIN
    side_call: Rule = Rule.DROP
    max_tokens: int | None = None

    @classmethod
    def parse(cls, config: Mapping[str, Any]) -> Self:
        values: dict[str, Any] = dict(config)
        known = sorted(item.name for item in fields(cls))
        if unknown := sorted(values.keys() - set(known)):
            raise BuilderError(f"builder config has the unknown key {unknown[0]!r}; known are {', '.join(known)}")
        limit = values.get("max_tokens")
        if limit is not None and (type(limit) is not int or limit < 1):
            raise BuilderError(f"builder config max_tokens is {limit!r}; give a number of tokens from 1, or null")
        if type(values.get("main_chain", False)) is not bool:
            raise BuilderError(f"builder config main_chain is {values['main_chain']!r}; give true or false")
        values.update((kind, _rule(kind, values[kind])) for kind in get_args(TraceKind) if kind in values)
        return cls(**values)

    def rule(self, kind: TraceKind) -> Rule:
        return Rule.TRAIN if kind == "main" else Rule(getattr(self, kind))


@dataclass(slots=True)
class Build:
    """The traces of a session, and how many sampled tokens train nothing, by cause."""

    traces: list[Trace] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def trained_tokens(self) -> int:
        return sum(trace.trained_tokens for trace in self.traces)


class Builder(Protocol):
    """Any callable of this shape can be registered, or named by its import path."""

    def __call__(self, store: TurnStore, options: Options) -> Build: ...


def _rule(kind: str, value: Any) -> Rule:
    if value not in set(Rule):
        raise BuilderError(f"builder config {kind} is {value!r}; choose one of {', '.join(Rule)}")
    return Rule(value)
