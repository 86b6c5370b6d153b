# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar diff`: what two builders, or two settings of one, make of the same journals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from nemo_gym_polar.cli.builds import built, sessions, settings
from nemo_gym_polar.cli.replay import counted, shown
from nemo_gym_polar.forest.builders import Build
from nemo_gym_polar.forest.builders.comparison import compare
from nemo_gym_polar.rollouts.recorded import RecordedSession


def diff(
    journals: Annotated[str, typer.Argument(help="A journal, a directory of them, or a session's id.")],
    builder: Annotated[str, typer.Option(help="The left build: a builder's name, or module:callable.")] = (
        "prefix_merging"
    ),
    option: Annotated[list[str] | None, typer.Option(help="Its setting, NAME=VALUE; again for more.")] = None,
    to: Annotated[str | None, typer.Option(help="The right build's builder, if another.")] = None,
    to_option: Annotated[list[str] | None, typer.Option(help="The right build's setting; again for more.")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Take what is whole of damaged journals.")] = False,
    runs: Annotated[Path, typer.Option(help="Where to look for a session's id.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Compare two builds of the same sessions: traces, token counts, and spans that changed their owner."""
    left = (builder, settings(builder, option or []))
    right = (to or builder, settings(to or builder, to_option or []))
    found = sessions(journals, runs, salvage=salvage)
    rows = [_session(session, built(session, *left), built(session, *right)) for session in found]
    if as_json:
        sides = {"left": _named(left), "right": _named(right)}
        typer.echo(json.dumps({**sides, "same": all(row["same"] for row in rows), "sessions": rows}, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    for row in rows:
        _print(console, row)
    differing = sum(not row["same"] for row in rows)
    console.print(f"{differing} of {len(rows)} sessions differ: {_text(left)} → {_text(right)}", markup=False)


def _session(session: RecordedSession, left: Build, right: Build) -> dict[str, Any]:
    found = compare(session.forest, left, right)
    return {
        "session": session.session_id,
        "same": found.same and counted(left.dropped) == counted(right.dropped),
        "left": _totals(left),
        "right": _totals(right),
        "traces": [asdict(change) for change in found.traces],
        "owners": [asdict(change) for change in found.owners],
    }


def _totals(made: Build) -> dict[str, Any]:
    return {
        "traces": len(made.traces),
        "tokens": sum(map(len, made.traces)),
        "trained_tokens": made.trained_tokens,
        "dropped_tokens_by_cause": counted(made.dropped),
    }


def _print(console: Console, row: Mapping[str, Any]) -> None:
    if row["same"]:
        return
    console.print(f"session {row['session']}", markup=False)
    for name in ("left", "right"):
        side = row[name]
        sizes = f"{side['traces']} traces, {side['tokens']} tokens, {side['trained_tokens']} trained on"
        console.print(f"  {name}: {sizes}; dropped: {shown(side['dropped_tokens_by_cause'])}")
    for change in row["traces"]:
        differing = f" ({', '.join(change['fields'])})" if change["fields"] else ""
        console.print(f"  {_trace(change['left'])} → {_trace(change['right'])}{differing}", markup=False)
    for change in row["owners"]:
        sides = f"{_owner(change['left'])} → {_owner(change['right'])}"
        console.print(f"  the {change['sampled']} tokens of turn {change['turn']}: {sides}", markup=False)


def _trace(side: Mapping[str, Any] | None) -> str:
    return f"{_name(side)} of {side['tokens']} tokens, {side['trained']} trained on" if side else "no trace"


def _owner(side: Mapping[str, Any] | None) -> str:
    return f"{side['trained']} trained on in {_name(side)}" if side else "not trained on"


def _name(side: Mapping[str, Any]) -> str:
    return f"trace {side['trace']} (to turn {side['tip']})"


def _named(build: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {"builder": build[0], "options": build[1]}


def _text(build: tuple[str, Mapping[str, Any]]) -> str:
    return " ".join([build[0], *(f"{name}={value}" for name, value in build[1].items())])
