# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar export`: recorded sessions as files for trainers and data sets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nemo_gym_polar.cli.builds import sessions, settings
from nemo_gym_polar.cli.errors import CommandError, UsageError
from nemo_gym_polar.cli.export_rows import Export, Format, TraceRow
from nemo_gym_polar.cli.selection import Filter, counted
from nemo_gym_polar.export.envelope import EnvelopeError, check_renames
from nemo_gym_polar.export.lines import put_lines, write_lines
from nemo_gym_polar.forest.trace import TraceKind
from nemo_gym_polar.rollouts.recorded import RecordedSession


class Kind(StrEnum):
    MAIN = "main"
    SUB_AGENT = "sub_agent"
    COMPACTION = "compaction"
    SIDE_CALL = "side_call"


ACCEPTED = ("COMPLETED", 1.0)  # what a fine-tuning set takes unless told otherwise


def export(
    run: Annotated[str, typer.Argument(help="A run's directory, a journal, or a session's id.")],
    form: Annotated[Format, typer.Option("--format", help="What to write (docs/exports.md).")] = Format.JSONL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file; - for stdout. Else exports/ in the run's directory."),
    ] = None,
    builder: Annotated[
        str, typer.Option(help="How turns become traces: a name, or module:callable.")
    ] = "prefix_merging",
    option: Annotated[list[str] | None, typer.Option(help="A builder's setting, NAME=VALUE; again for more.")] = None,
    status: Annotated[list[str] | None, typer.Option(help="Only sessions that ended so; again for more.")] = None,
    min_reward: Annotated[float | None, typer.Option(help="Only sessions with at least this reward.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only sessions of this task; again for more.")] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="For sft: also what is neither COMPLETED nor of reward 1.")
    ] = False,
    kind: Annotated[list[Kind] | None, typer.Option(help="For sft: kinds of conversations (default: main).")] = None,
    key: Annotated[list[str] | None, typer.Option(help="For envelope: KEY=NAME renames a key; again for more.")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Take what is whole of damaged journals.")] = False,
    runs: Annotated[Path, typer.Option(help="Where to look for a session's id.")] = Path("runs"),
) -> None:
    """Write recorded sessions as traces, conversations, envelopes or prefix trees."""
    _check_usage(form, output, kind, key, everything)
    chosen = _filter(form, status, min_reward, task, everything)
    kinds: tuple[TraceKind, ...] = tuple(one.value for one in kind or [Kind.MAIN])
    how = Export(chosen, builder, settings(builder, option or []), kinds, _renames(key or []))
    found = chosen.wanted(sessions(run, runs, salvage=salvage))
    path = output or _default(run, form)
    count = _write(how, form, path, found)
    typer.echo(_report(form, path, count, how), err=str(path) == "-")


def _write(how: Export, form: Format, path: Path, found: Iterable[RecordedSession]) -> int:
    """How many rows there were; none is an error, and then there is no file."""
    if form is Format.PARQUET:
        return _parquet(path, _some(how.traces(found), how.filter))
    rows = _some(how.lines(form, found), how.filter)
    return put_lines(sys.stdout.buffer, rows) if str(path) == "-" else write_lines(path, rows)


def _some[T](rows: Iterator[T], chosen: Filter) -> Iterator[T]:
    """The rows; CommandError before anything is written if there are none."""
    first = next(rows, None)
    if first is None:
        why = counted(chosen.left_out) or "they hold no kept answer"
        hint = "; see --status, --min-reward, --task and --everything" if chosen.left_out else ""
        raise CommandError(f"nothing to export ({why}){hint}")
    return _chained(first, rows)


def _chained[T](first: T, others: Iterator[T]) -> Iterator[T]:
    yield first
    yield from others


def _parquet(path: Path, rows: Iterable[TraceRow]) -> int:
    try:
        from nemo_gym_polar.export.parquet import write_parquet
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise CommandError("--format parquet needs pyarrow; pip install 'nemo-gym-polar[parquet]'") from error
    return write_parquet(path, rows)


def _filter(
    form: Format, status: Sequence[str] | None, reward: float | None, tasks: Sequence[str] | None, everything: bool
) -> Filter:
    accepted = form is Format.SFT and not everything
    statuses = status or ([ACCEPTED[0]] if accepted else [])
    least = ACCEPTED[1] if accepted and reward is None else reward
    return Filter(frozenset(one.upper() for one in statuses), least, frozenset(tasks or ()))


def _check_usage(form: Format, output: Path | None, kind: object, key: object, everything: bool) -> None:
    if kind and form is not Format.SFT:
        raise UsageError(
            "--kind is for --format sft; which traces there are is the builder's: --option side_call=train"
        )
    if key and form is not Format.ENVELOPE:
        raise UsageError("--key is for --format envelope; the other formats have fixed names")
    if everything and form is not Format.SFT:
        raise UsageError("--everything is for --format sft; the other formats take every session by themselves")
    if form is Format.PARQUET and str(output) == "-":
        raise UsageError("--format parquet can't go to stdout; name a file with -o FILE")


def _renames(keys: Sequence[str]) -> Mapping[str, str]:
    renames = {}
    for one in keys:
        name, _, new = one.partition("=")
        if not new:
            raise UsageError(f"--key {one!r} has no new name; write KEY=NAME, such as token_ids=input_ids")
        renames[name] = new
    try:
        return check_renames(renames)
    except EnvelopeError as error:
        raise UsageError(f"--key: {error}") from error


def _default(run: str, form: Format) -> Path:
    """Beside the journals of a run; where no directory was named, where one works."""
    names = {Format.PARQUET: "traces.parquet", Format.JSONL: "traces.jsonl"}
    place = Path(run)
    return (place if place.is_dir() else Path()) / "exports" / names.get(form, f"{form}.jsonl")


def _report(form: Format, path: Path, count: int, how: Export) -> str:
    what = {Format.SFT: "conversations", Format.ENVELOPE: "envelopes", Format.TREE: "groups"}.get(form, "traces")
    made = f"{count} {what} of {how.filter.taken} sessions: {'stdout' if str(path) == '-' else path}"
    left = f"; left out: {counted(how.filter.left_out)}" if how.filter.left_out else ""
    tokens = f"; tokens trained on: {how.trained_tokens}, dropped: {counted(how.dropped) or 'none'}"
    return f"{made}{left}{'' if form is Format.SFT else tokens}"
