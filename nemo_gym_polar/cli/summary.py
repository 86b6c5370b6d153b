# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar traces --summary`: what a whole run's sessions came to, and what forks cost, by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemo_gym_polar.cli.errors import CommandError
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.errors import BuilderError, JournalFormatError
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Edge, Turn


@dataclass(slots=True)
class Summary:
    """Counts over sessions. A fork is a conversation that goes on, but not from its tokens: `reread` is what was read
    anew for it."""

    sessions: int = 0
    unreadable: list[str] = field(default_factory=list)
    damaged: int = 0
    unfinished: int = 0
    traces: int = 0
    context: int = 0
    sampled: int = 0
    trained: int = 0
    edges: Counter[str] = field(default_factory=Counter)
    forks: Counter[str] = field(default_factory=Counter)
    reread: Counter[str] = field(default_factory=Counter)
    drifts: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    exhausted: Counter[str] = field(default_factory=Counter)

    def add(self, path: Path, builder: str) -> None:
        try:
            recovered = recover(path)
            built = build(recovered.forest, builder)
        except JournalFormatError as error:
            self.unreadable.append(str(error))
            return
        except BuilderError as error:
            raise CommandError(f"{path}: {error}") from error
        self.sessions += 1
        self.damaged += recovered.damage is not None
        self.unfinished += recovered.closed is None
        if spent := (recovered.closed or {}).get("exhausted"):
            self.exhausted[spent["budget"]] += 1
        for turn in recovered.forest.turns:
            self._add_turn(turn)
        self.traces += len(built.traces)
        self.trained += built.trained_tokens
        self.dropped.update({str(cause): tokens for cause, tokens in built.dropped.items()})

    def _add_turn(self, turn: Turn) -> None:
        self.edges[turn.edge] += 1
        if turn.has_tokens:  # of a failed call nobody knows what was read
            self.context += turn.context_length
        self.sampled += len(turn.sampled)
        if turn.edge is Edge.ROOT and turn.cause is not None:
            self.forks[turn.cause] += 1
            self.reread[turn.cause] += len(turn.delta)
        if turn.drift is not None:
            self.drifts[turn.drift] += 1

    def plain(self) -> dict[str, Any]:
        return {
            "sessions": self.sessions,
            "unreadable_journals": len(self.unreadable),
            "damaged_sessions": self.damaged,
            "unfinished_sessions": self.unfinished,
            "exhausted_sessions_by_budget": _plain(self.exhausted),
            "turns": self.edges.total(),
            "turns_by_edge": _plain(self.edges),
            "traces": self.traces,
            "context_tokens": self.context,
            "sampled_tokens": self.sampled,
            "trained_tokens": self.trained,
            "dropped_tokens_by_cause": _plain(self.dropped),
            "forks_by_cause": _plain(self.forks),
            "reread_tokens_by_cause": _plain(self.reread),
            "drifts_by_cause": _plain(self.drifts),
        }

    def causes(self) -> list[dict[str, Any]]:
        """Each cause with its forks and what they cost."""
        return [
            {
                "fork": str(cause),
                "forks": number,
                "reread tokens": self.reread[cause],
                "of all read": self._share(cause),
            }
            for cause, number in self.forks.most_common()
        ]

    def _share(self, cause: str) -> str:
        return f"{self.reread[cause] / self.context:.1%}" if self.context else "-"


def summarise(paths: Iterable[Path], builder: str) -> Summary:
    """One session at a time: a run may hold more than fits in memory."""
    summary = Summary()
    for path in paths:
        summary.add(path, builder)
    return summary


def _plain(counts: Counter[str]) -> dict[str, int]:
    return {str(name): number for name, number in counts.most_common()}
