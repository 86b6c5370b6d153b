# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar traces`: what the journal of a session holds, and what a builder makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from nemo_gym_polar.cli.errors import CommandError
from nemo_gym_polar.cli.summary import Summary, summarise
from nemo_gym_polar.forest.builders import Build, build
from nemo_gym_polar.forest.errors import BuilderError, JournalFormatError
from nemo_gym_polar.forest.journal import Recovered, recover
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Turn

SUFFIX = ".journal"
PAGE = 240  # columns where there is no terminal: nothing that is read later should be cut off


def show(
    session: Annotated[str, typer.Argument(help="A session's id, its journal, or a directory of journals.")],
    runs: Annotated[Path, typer.Option(help="Where to look for a session's id.")] = Path("runs"),
    builder: Annotated[str, typer.Option(help="How turns become traces.")] = "prefix_merging",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="All sessions together: tokens and forks by cause.")
    ] = False,
) -> None:
    """Show the turns and the traces of a session, or one line for each of several."""
    if summary:
        _show_summary(summarise(find(session, runs), builder), as_json=as_json)
        return
    described = [describe(path, builder) for path in find(session, runs)]
    if as_json:
        typer.echo(json.dumps(described if len(described) > 1 else described[0], indent=2))
    elif len(described) == 1:
        _print_session(described[0])
    else:
        print_table("sessions", map(_summary, described))


def find(session: str, runs: Path) -> list[Path]:
    """The journals that are meant; CommandError if there are none."""
    place = Path(session)
    if place.is_file():
        return [place]
    alike = place.rglob(f"*{SUFFIX}") if place.is_dir() else runs.rglob(f"{session}{SUFFIX}")
    found = sorted(path for path in alike if path.is_file())
    if not found:
        where = place if place.is_dir() else runs
        raise CommandError(f"no journal of {session!r} under {where}; give a journal's path, or --runs DIRECTORY")
    return found


def describe(path: Path, builder: str) -> dict[str, Any]:
    """A journal as plain values: the session, its turns, its traces, and the sampled tokens that train nothing."""
    try:
        recovered = recover(path)
        built = build(recovered.forest, builder)
    except (BuilderError, JournalFormatError) as error:
        raise CommandError(f"{path}: {error}") from error
    return {
        "session": recovered.forest.session_id,
        "journal": str(path),
        "ended": recovered.closed,
        "damage": _damage(recovered),
        "turns": [_turn(turn) for turn in recovered.forest.turns],
        "traces": [_trace(trace) for trace in built.traces],
        "trained_tokens": built.trained_tokens,
        "dropped_tokens_by_cause": _dropped(built),
    }


def _damage(recovered: Recovered) -> str | None:
    if recovered.damage is not None:
        return str(recovered.damage)
    if not recovered.forest.session_id:
        return "half-written: it ends before its first record, so it holds no session"
    return f"{recovered.torn} bytes of an unfinished record" if recovered.torn else None


def _dropped(built: Build) -> dict[str, int]:
    return {str(cause): tokens for cause, tokens in sorted(built.dropped.items())}


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "turn": turn.index,
        "after": turn.parent,
        "edge": str(turn.edge),
        "cause": str(turn.cause) if turn.cause else None,
        "status": str(turn.status),
        "context": turn.context_length,
        "new": len(turn.delta),
        "sampled": len(turn.sampled),
        "finish": turn.finish_reason,
        "versions": _versions(span.version for span in turn.versions),
        "seconds": round(turn.ended - turn.started, 3),
    }


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        "trace": trace.index,
        "kind": trace.kind,
        "turns": list(trace.turns),
        "tokens": len(trace),
        "trained": trace.trained_tokens,
        "shared": trace.shared_prefix,
        "finish": trace.finish_reason,
        "versions": _versions(span.version for span in trace.versions),
    }


def _versions(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _summary(described: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "session": described["session"],
        "turns": len(described["turns"]),
        "traces": len(described["traces"]),
        "trained": described["trained_tokens"],
        "dropped": sum(described["dropped_tokens_by_cause"].values()),
        "damage": described["damage"],
    }


def _show_summary(summary: Summary, *, as_json: bool) -> None:
    plain = summary.plain()
    if as_json:
        typer.echo(json.dumps(plain, indent=2))
        return
    for name, value in plain.items():
        typer.echo(f"{name.replace('_', ' ')}: {_counts(value) if isinstance(value, dict) else value}")
    if causes := summary.causes():
        print_table("forks", causes)


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in numbers.items()) or "none"


def _print_session(described: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"session {described['session']}  ({described['journal']})", markup=False)
    if described["damage"]:
        console.print(f"[yellow]damaged:[/] {escape(described['damage'])}")
    print_table("turns", described["turns"])
    print_table("traces", described["traces"])
    dropped = _counts(described["dropped_tokens_by_cause"])
    console.print(f"trained tokens: {described['trained_tokens']}; not trained on: {dropped}")


def print_table(title: str, rows: Iterable[Mapping[str, Any]]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, row in enumerate(rows):
        if number == 0:
            for name in row:
                table.add_column(name, no_wrap=True, justify="right" if isinstance(row[name], int) else "left")
        table.add_row(*(Text(_cell(value)) for value in row.values()))  # what is in brackets is no markup
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PAGE)
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
