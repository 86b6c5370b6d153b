# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The journal of a session: one append-only file, the only truth about its tokens.

A record is durable before its turn is answered. A process killed at any instant leaves whole records and at most one
torn tail, which is cut off when the file is opened again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson

from nemo_gym_polar.forest.committer import Committer, LogFile
from nemo_gym_polar.forest.errors import CorruptJournalError, JournalError, JournalFormatError
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.framing import PREAMBLE, Kind, Record, check_preamble, frame, records
from nemo_gym_polar.forest.record import TurnCodec, decode_mark, encode_mark, encode_session
from nemo_gym_polar.forest.turn import Mark, Turn


@dataclass(slots=True)
class Recovered:
    """What a journal file holds. `end` is the offset after its last whole record, `torn` the bytes beyond it."""

    forest: Forest
    metadata: dict[str, Any] = field(default_factory=dict)
    created: float = 0.0
    closed: dict[str, Any] | None = None
    end: int = 0
    torn: int = 0
    damage: CorruptJournalError | None = None


class Journal:
    """Appends to a session's file. Make one with `create` or `resume`."""

    def __init__(self, file: LogFile, forest: Forest, committer: Committer) -> None:
        self._file = file
        self._codec = TurnCodec(forest)
        self._committer = committer

    @classmethod
    async def create(
        cls, path: Path, forest: Forest, committer: Committer, metadata: Mapping[str, Any] | None = None
    ) -> Self:
        """A new file, durable with its name. Raises `JournalError` if it exists or can't be made."""
        descriptor = await asyncio.to_thread(_make, path)
        journal = cls(LogFile(path, descriptor, 0), forest, committer)
        session = frame(Kind.SESSION, encode_session(forest.session_id, time.time(), metadata or {}))
        await committer.append(journal._file, PREAMBLE + session)
        return journal

    @classmethod
    def resume(cls, path: Path, committer: Committer) -> tuple[Self, Forest]:
        """Open an existing file, cut off its torn tail, and go on after its last whole record."""
        recovered = recover(path)
        if recovered.damage is not None:
            raise recovered.damage
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(descriptor, recovered.end)
        os.fsync(descriptor)
        return cls(LogFile(path, descriptor, recovered.end), recovered.forest, committer), recovered.forest

    @staticmethod
    def begun(path: Path) -> bool:
        """Whether there is a session to resume; a file torn before its first record held none, and is removed."""
        if not path.exists():
            return False
        recovered = recover(path)
        if recovered.damage is None and not recovered.forest.session_id:
            path.unlink()
            return False
        return True

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def size(self) -> int:
        """Durable bytes."""
        return self._file.size

    async def append(self, turn: Turn, marks: Iterable[Mark] = ()) -> None:
        """Make a turn durable, and the marks that belong to it."""
        records = [frame(Kind.TURN, self._codec.encode(turn)), *map(_mark_record, marks)]
        await self._committer.append(self._file, b"".join(records))

    def mark(self, marks: Iterable[Mark]) -> None:
        """Write marks with the next commit."""
        if data := b"".join(map(_mark_record, marks)):
            self._committer.post(self._file, data)

    async def close(self, outcome: Mapping[str, Any] | None = None) -> None:
        """Write how the session ended and close the file."""
        await self._committer.append(self._file, frame(Kind.CLOSE, orjson.dumps(dict(outcome or {}))), last=True)


def read_journal(path: Path) -> Forest:
    """The forest that a journal holds; a torn tail is ignored, damage before it raises `CorruptJournalError`."""
    recovered = recover(path)
    if recovered.damage is not None:
        raise recovered.damage
    return recovered.forest


def recover(path: Path) -> Recovered:
    """All that is whole in a journal file. Damage is reported in the result, what follows it is not read."""
    return parse_journal(path.read_bytes(), str(path))


def parse_journal(data: bytes, name: str) -> Recovered:
    """`recover` for the bytes of a file; `name` is for messages."""
    recovered = Recovered(Forest(""))
    recovered.end = check_preamble(data, name)
    codec = TurnCodec(recovered.forest)
    try:
        for record in records(data, recovered.end, name):
            codec = _read(record, recovered, codec, name)
            recovered.end = record.end
    except CorruptJournalError as error:
        error.turns = len(recovered.forest)
        recovered.damage = error
    recovered.torn = len(data) - recovered.end
    return recovered


def _read(record: Record, recovered: Recovered, codec: TurnCodec, name: str) -> TurnCodec:
    match record.kind:
        case Kind.SESSION:
            session = orjson.loads(record.payload)
            recovered.forest = Forest(session["session_id"])
            recovered.created, recovered.metadata = session["created"], session["metadata"]
            return TurnCodec(recovered.forest)
        case Kind.TURN:
            recovered.forest.restore(codec.decode(record.payload))
        case Kind.MARK:
            recovered.forest.apply(decode_mark(record.payload))
        case Kind.CLOSE:
            recovered.closed = orjson.loads(record.payload)
        case unknown:
            raise JournalFormatError(f"{name} holds a record of unknown kind {unknown}")
    return codec


def _mark_record(mark: Mark) -> bytes:
    return frame(Kind.MARK, encode_mark(mark))


def _make(path: Path) -> int:
    """Create the file and make its name durable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        _sync_directory(path.parent)
    except OSError as error:
        raise JournalError(error.errno, f"can't make the journal ({error.strerror})", str(path)) from error
    return descriptor


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
