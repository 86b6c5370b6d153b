# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Framing: how bytes lie in a journal file.

    file    MAGIC, schema version (u16), then records
    record  payload length (u32), kind (u8), CRC-32 of the payload (u32), CRC-32 of these nine bytes (u32), payload

All numbers are little-endian. The header has its own checksum, so that a damaged length is not taken for a torn tail.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from zlib import crc32

from nemo_gym_polar.forest.errors import CorruptJournalError, JournalFormatError

MAGIC = b"polarjnl"
SCHEMA = 1
PREAMBLE = MAGIC + struct.pack("<H", SCHEMA)
_FIELDS = struct.Struct("<IBI")
_CHECK = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECK.size


class Kind(IntEnum):
    """What a record holds."""

    SESSION = 1
    TURN = 2
    MARK = 3
    CLOSE = 4


@dataclass(frozen=True, slots=True)
class Record:
    kind: int
    payload: bytes
    end: int  # offset of the byte after it


def frame(kind: Kind, payload: bytes) -> bytes:
    fields = _FIELDS.pack(len(payload), kind, crc32(payload))
    return fields + _CHECK.pack(crc32(fields)) + payload


def check_preamble(data: bytes, name: str) -> int:
    """The offset of the first record; 0 for a file that was torn before its preamble was whole."""
    head = data[: len(PREAMBLE)]
    if len(head) < len(PREAMBLE) and PREAMBLE.startswith(head):
        return 0
    if not head.startswith(MAGIC):
        raise JournalFormatError(f"{name} is not a journal: it starts with {head!r}, not with {MAGIC!r}")
    (schema,) = struct.unpack_from("<H", data, len(MAGIC))
    if schema != SCHEMA:
        raise JournalFormatError(f"{name} has journal schema {schema}, this version reads {SCHEMA}; use a newer one")
    return len(PREAMBLE)


def records(data: bytes, start: int, name: str) -> Iterator[Record]:
    """The whole records from `start`. Stops at a torn tail; raises `CorruptJournalError` at damage before the end."""
    at = start
    while at < len(data):
        if len(data) - at < HEADER_BYTES or not any(memoryview(data)[at : at + HEADER_BYTES]):
            if any(memoryview(data)[at + HEADER_BYTES :]):
                raise _damaged(name, at, "a header of zeros")
            return
        length, kind, checksum = _FIELDS.unpack_from(data, at)
        (header_checksum,) = _CHECK.unpack_from(data, at + _FIELDS.size)
        if crc32(memoryview(data)[at : at + _FIELDS.size]) != header_checksum:
            raise _damaged(name, at, "a damaged header")
        begin, end = at + HEADER_BYTES, at + HEADER_BYTES + length
        payload = data[begin:end]
        if end > len(data) or (crc32(payload) != checksum and end == len(data)):
            return
        if crc32(payload) != checksum:
            raise _damaged(name, at, "a damaged payload")
        yield Record(kind, payload, end)
        at = end


def _damaged(name: str, offset: int, what: str) -> CorruptJournalError:
    return CorruptJournalError(f"{name} is corrupt: {what} at byte {offset}", offset=offset)
