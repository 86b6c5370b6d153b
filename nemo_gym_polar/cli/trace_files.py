# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The trace files of a run that tell of a session, found by where its journal lies.

A gateway and a rollout write `traces/<session>.jsonl`, with arrays written out; training writes `traces/step-N.jsonl`,
in short form and of many sessions. Both lie beside the directory of the journals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from nemo_gym_polar.cli.errors import CommandError
from nemo_gym_polar.export.jsonl import decode_trace
from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.findings import Breach, Finding
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.results import read_row


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A session's traces in a file. `whole`: they are all that its build had; `damage` are rows that were changed."""

    path: Path
    traces: tuple[Trace, ...]
    whole: bool
    damage: tuple[Finding, ...]


def trace_files(journal: Path, session_id: str) -> list[TraceFile]:
    """CommandError for a line that is no trace."""
    directory = journal.parent.parent / "traces"
    own = directory / f"{session_id}.jsonl"
    paths = [path for path in (own, *sorted(directory.glob("step-*.jsonl"))) if path.is_file()]
    found = [_read(path, session_id, whole=path == own) for path in paths]
    return [file for file in found if file.traces]


def _read(path: Path, session_id: str, *, whole: bool) -> TraceFile:
    traces, damage = [], []
    for number, row in _rows(path, session_id):
        try:
            trace = _trace(row)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise CommandError(f"{path}, line {number} is not a trace: {error!r}") from error
        if row.get("digest") not in (None, trace_digest(trace)):
            damage.append(Finding(Breach.DIGEST, f"trace {trace.index} is not what was written", trace=trace.index))
        traces.append(trace)
    return TraceFile(path, tuple(traces), whole, tuple(damage))


def _rows(path: Path, session_id: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of one session; others are not parsed."""
    name = session_id.encode()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if name not in line:
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise CommandError(f"{path}, line {number} is not JSON: {error}") from error
            if isinstance(row, dict) and row.get("session_id") == session_id:
                yield number, row


def _trace(row: Mapping[str, Any]) -> Trace:
    return read_row(row) if "loss_mask" in row else decode_trace(row)
