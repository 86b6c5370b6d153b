# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar audit`: do the traces of a session say what its journal says, and does the engine agree?"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from nemo_gym_polar.cli.audit_report import Report, examine
from nemo_gym_polar.cli.connection import require_http
from nemo_gym_polar.cli.errors import FAILED, CommandError, UsageError
from nemo_gym_polar.cli.logprob_audit import ScoringKind, compare, scoring_engine
from nemo_gym_polar.cli.logprob_audit import described as described_differences
from nemo_gym_polar.cli.traces import find, print_table
from nemo_gym_polar.engines.base import ScoringEngine
from nemo_gym_polar.forest.differences import Differences


def audit(
    session: Annotated[str, typer.Argument(help="A session's id, its journal, or a directory of journals.")],
    runs: Annotated[Path, typer.Option(help="Where to look for a session's id.")] = Path("runs"),
    builder: Annotated[str, typer.Option(help="How turns become traces.")] = "prefix_merging",
    engine: Annotated[str | None, typer.Option(help="Base URL of an engine to compare with.")] = None,
    engine_kind: Annotated[ScoringKind, typer.Option(help="What the engine is.")] = ScoringKind.VLLM,
    model: Annotated[str, typer.Option(help="The model's name at the engine.")] = "polar-policy",
    api_key: Annotated[str | None, typer.Option(envvar="POLAR_ENGINE_KEY", help="The engine's API key.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Fail if a log-probability differs by more, in nats.", min=0)
    ] = None,
    any_version: Annotated[
        bool, typer.Option("--any-version", help="Compare tokens of other weights than the engine's, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Verify a session's journal against its traces, token by token. Exit code 1 if something is wrong."""
    if engine is None and (tolerance is not None or any_version):
        raise UsageError("--tolerance and --any-version are of the comparison with an engine; give --engine URL")
    require_http("--engine", *([engine] if engine else []))
    scoring = None if engine is None else scoring_engine(engine_kind, engine, model, api_key)
    reports = asyncio.run(_reports(find(session, runs), builder, scoring, tolerance, any_version=any_version))
    if len(reports) == 1 and reports[0].error is not None:
        raise CommandError(reports[0].error)
    _show(reports, as_json=as_json)
    if not all(report.sound for report in reports):
        raise typer.Exit(FAILED)


async def _reports(
    journals: Iterable[Path], builder: str, engine: ScoringEngine | None, tolerance: float | None, *, any_version: bool
) -> list[Report]:
    """One session after another: a directory may hold more tokens than memory does."""
    reports = []
    try:
        for journal in journals:
            report, forest = examine(journal, builder)
            report.tolerance = tolerance
            if engine is not None and forest is not None:
                report.differences = await compare(engine, forest, any_version=any_version)
            reports.append(report)
    finally:
        if engine is not None:
            await engine.close()
    return reports


def _show(reports: Sequence[Report], *, as_json: bool) -> None:
    if as_json:
        described = [report.describe() for report in reports]
        typer.echo(json.dumps(described if len(described) > 1 else described[0], indent=2))
    elif len(reports) == 1:
        _print_session(reports[0])
    else:
        print_table("sessions", map(_summary, reports))
        for report in reports:
            _print_findings(report)
        sound = [report for report in reports if report.sound]
        tokens = sum(report.trained for report in sound)
        typer.echo(f"{len(sound)} of {len(reports)} sessions sound: {tokens} tokens to train on, each owned once")


def _summary(report: Report) -> dict[str, Any]:
    return {
        "session": report.session,
        "turns": report.turns,
        "trained": report.trained,
        "traces": sum(report.checked.values()),
        "breaches": len(report.breaches),
        "largest difference": None if report.differences is None else f"{report.differences.largest:.2e}",
        "verdict": "sound" if report.sound else report.error or report.disagreement or "unsound",
        "note": report.note,
    }


def _print_session(report: Report) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"session {report.session}  ({report.journal})", markup=False)
    if report.note:
        console.print(report.note, style="yellow", markup=False)
    found = Counter(source for source, _ in report.breaches)
    rows = [{"traces of": name, "count": count, "breaches": found[name]} for name, count in report.checked.items()]
    print_table("audit", rows)
    if report.differences is not None:
        _print_differences(report.differences)
    _print_findings(report)
    if report.sound:
        console.print(f"sound: {report.trained} tokens to train on, each owned once, as it was sampled")


def _print_differences(differences: Differences) -> None:
    weights = f"weights {differences.version}" if differences.version else "weights that it does not name"
    if rows := _spreads(differences):
        print_table(f"log-probabilities: differences from the engine's under {weights}, in nats", rows)
    for cause, tokens in sorted(differences.left_out.items()):
        typer.echo(f"not compared: {tokens} tokens ({cause})")


def _spreads(differences: Differences) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = described_differences(differences)["edges"]
    numbers = ("mean", "p50", "p99", "max")
    return [{**row, **{name: f"{row[name]:.2e}" for name in numbers}} for row in rows]


def _print_findings(report: Report) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for source, finding in report.breaches:
        console.print(f"{report.session}: {finding.breach}: {finding.message} ({source})", style="red", markup=False)
    if report.disagreement:
        console.print(f"{report.session}: {report.disagreement}", style="red", markup=False)
