# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Task sets as JSONL: one row per line, in the fields of `TaskRow`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from nemo_gym_polar.tasks.row import TaskRow
from nemo_gym_polar.tasks.task_set import TaskSetError


def read_rows(path: Path) -> list[TaskRow]:
    """Every row of `path`; blank lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskSetError(f"task set {path} cannot be read: {error}") from error
    rows = [_parse(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise TaskSetError(f"task set {path} has no rows; write one JSON object per line")
    return rows


def write_rows(rows: Iterable[TaskRow], path: Path) -> None:
    """Write `rows` so that `read_rows` gives them back."""
    path.write_text("".join(row.model_dump_json(exclude_defaults=True) + "\n" for row in rows), encoding="utf-8")


def _parse(path: Path, number: int, line: str) -> TaskRow:
    try:
        return TaskRow.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the line"
        raise TaskSetError(f"{path}:{number}: {field}: {first['msg']} (got {str(first['input'])[:80]!r})") from error
