# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar replay`: any builder over any journal, and what it gives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from nemo_gym_polar.cli.builds import built, sessions, settings
from nemo_gym_polar.cli.traces import print_table
from nemo_gym_polar.forest.builders import Build
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.recorded import RecordedSession


def replay(
    journals: Annotated[str, typer.Argument(help="A journal, a directory of them, or a session's id.")],
    builder: Annotated[str, typer.Option(help="A builder's name, or module:callable.")] = "prefix_merging",
    option: Annotated[list[str] | None, typer.Option(help="A builder's setting, NAME=VALUE; again for more.")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="Take what is whole of damaged journals.")] = False,
    runs: Annotated[Path, typer.Option(help="Where to look for a session's id.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Build the traces of recorded sessions anew. Nothing is written, no engine is asked."""
    config = settings(builder, option or [])
    found = sessions(journals, runs, salvage=salvage)
    rows = [_session(session, built(session, builder, config)) for session in found]
    whole = {"builder": builder, "options": config, "sessions": rows, "total": _total(rows)}
    if as_json:
        typer.echo(json.dumps(whole, indent=2))
    else:
        _print(whole)


def _session(session: RecordedSession, made: Build) -> dict[str, Any]:
    return {
        "session": session.session_id,
        "task": session.task_id,
        "status": session.status,
        "reward": session.reward,
        "turns": len(session.forest),
        "traces": [_trace(trace) for trace in made.traces],
        "sampled_tokens": sum(len(turn.sampled) for turn in session.forest.turns),
        "trained_tokens": made.trained_tokens,
        "dropped_tokens_by_cause": counted(made.dropped),
    }


def counted(dropped: Mapping[str, int]) -> dict[str, int]:
    return {str(cause): tokens for cause, tokens in sorted(dropped.items()) if tokens}


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        "trace": trace.index,
        "kind": trace.kind,
        "turns": list(trace.turns),
        "tokens": len(trace),
        "trained": trace.trained_tokens,
        "parent": trace.parent,
        "shared": trace.shared_prefix,
        "finish": trace.finish_reason,
        "reward": trace.reward,
    }


def _total(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    dropped: Counter[str] = Counter()
    total = Counter[str](dict.fromkeys(("sessions", "traces", "tokens", "sampled_tokens", "trained_tokens"), 0))
    for row in rows:
        total["sessions"] += 1
        total["traces"] += len(row["traces"])
        total["tokens"] += sum(trace["tokens"] for trace in row["traces"])
        total["sampled_tokens"] += row["sampled_tokens"]
        total["trained_tokens"] += row["trained_tokens"]
        dropped.update(row["dropped_tokens_by_cause"])
    return {**total, "dropped_tokens_by_cause": counted(dropped)}


def _print(whole: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    options = "".join(f" {name}={value}" for name, value in whole["options"].items())
    console.print(f"{whole['builder']}{options}", markup=False)
    rows = whole["sessions"]
    if len(rows) == 1:
        print_table("traces", rows[0]["traces"])
    else:
        print_table("sessions", [_line(row) for row in rows])
    total = whole["total"]
    console.print(
        f"{total['traces']} traces, {total['tokens']} tokens; of {total['sampled_tokens']} sampled tokens "
        f"{total['trained_tokens']} trained on; dropped: {shown(total['dropped_tokens_by_cause'])}"
    )


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    dropped = shown(row["dropped_tokens_by_cause"])
    same = {name: row[name] for name in ("session", "status", "reward", "turns")}
    return {**same, "traces": len(row["traces"]), "trained": row["trained_tokens"], "dropped": dropped}


def shown(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{tokens} {cause}" for cause, tokens in dropped.items()) or "none"
