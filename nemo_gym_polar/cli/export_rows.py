# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of recorded sessions in each format of `polar export`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nemo_gym_polar.cli.builds import built
from nemo_gym_polar.cli.errors import CommandError
from nemo_gym_polar.cli.selection import Filter
from nemo_gym_polar.export.envelope import EnvelopeError, encode_envelope
from nemo_gym_polar.export.jsonl import encode_trace
from nemo_gym_polar.export.prefix_tree import encode_tree
from nemo_gym_polar.export.sft import NotTextError, conversations, encode_conversation
from nemo_gym_polar.forest.builders import Build
from nemo_gym_polar.forest.trace import Trace, TraceKind
from nemo_gym_polar.rollouts.recorded import RecordedSession

Row = Mapping[str, Any]
TraceRow = tuple[Trace, dict[str, Any]]


class Format(StrEnum):
    JSONL = "jsonl"
    """One trace a line."""
    PARQUET = "parquet"
    """One trace a row."""
    SFT = "sft"
    """One conversation a line: messages and tools."""
    ENVELOPE = "envelope"
    """One session a line, with all of its traces."""
    TREE = "tree"
    """One group a line, as a prefix tree."""


@dataclass(slots=True)
class Export:
    """What becomes of the wanted sessions, in each format; the tokens of their builds are counted on the way."""

    filter: Filter
    builder: str
    config: Mapping[str, Any]
    kinds: tuple[TraceKind, ...]
    renames: Mapping[str, str]
    trained_tokens: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def lines(self, form: Format, found: Iterable[RecordedSession]) -> Iterator[Row]:
        """The rows of every format but Parquet."""
        makers = {
            Format.JSONL: self.jsonl,
            Format.SFT: self.sft,
            Format.ENVELOPE: self.envelope,
            Format.TREE: self.tree,
        }
        return makers[form](found)

    def build(self, session: RecordedSession) -> Build:
        made = built(session, self.builder, self.config)
        self.trained_tokens += made.trained_tokens
        self.dropped.update(made.dropped)
        return made

    def traces(self, found: Iterable[RecordedSession]) -> Iterator[TraceRow]:
        for session in found:
            for trace in self.build(session).traces:
                yield trace, session.about

    def jsonl(self, found: Iterable[RecordedSession]) -> Iterator[Row]:
        return ({**encode_trace(trace), **about} for trace, about in self.traces(found))

    def sft(self, found: Iterable[RecordedSession]) -> Iterator[Row]:
        for session in found:
            learnt: set[int] = set()
            about = {"session_id": session.session_id, **session.about, "reward": session.reward}
            for number, turn in enumerate(conversations(session.forest, self.kinds)):
                try:
                    said = encode_conversation(session.forest, turn, learnt)
                except NotTextError as error:
                    self.filter.drop(f"conversation with {error.cause}")
                    continue
                yield {**about, "conversation": number, "kind": session.forest.kind(turn), **said}

    def envelope(self, found: Iterable[RecordedSession]) -> Iterator[Row]:
        for session in found:
            about = {**session.about, "reward": session.reward}
            made = self.build(session)
            try:
                yield encode_envelope(session.forest, made, about, self.renames)
            except EnvelopeError as error:
                raise CommandError(f"{session.journal}: {error}") from error

    def tree(self, found: Iterable[RecordedSession]) -> Iterator[Row]:
        groups: dict[str, list[TraceRow]] = {}
        for trace, about in self.traces(found):
            groups.setdefault(about["task_id"] or trace.session_id, []).append((trace, about))
        return (encode_tree(group, rows) for group, rows in groups.items())
