# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Rows as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson

LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write all rows and return how many. The file appears when complete."""
    with appearing(path) as part, part.open("wb") as file:
        return put_lines(file, rows)


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A place to write to; the file moves to `path` when it is whole, and goes if it never will be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def put_lines(file: BinaryIO, rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for row in rows:
        file.write(orjson.dumps(row, option=LINE))
        count += 1
    return count
