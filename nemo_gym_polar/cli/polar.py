# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar`: the rollout service and its gateways, what was kept of a session, and the state of this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from nemo_gym_polar import __version__
from nemo_gym_polar.cli import (
    audit,
    certificate,
    conformance,
    diff,
    doctor,
    errors,
    export,
    prune,
    replay,
    serve,
    status,
    submit,
    traces,
    watch,
)
from nemo_gym_polar.cli.harness import app as harness_app
from nemo_gym_polar.cli.policy import app as policy_app

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, rich_markup_mode="markdown")
app.add_typer(harness_app, name="harness")
app.add_typer(policy_app, name="policy")
app.command("serve")(serve.serve)
app.command("submit")(submit.submit)
app.command("status")(status.status)
app.command("watch")(watch.watch)
app.command("cancel")(submit.cancel)
app.command("nodes")(status.nodes)
app.command("prune")(prune.prune)
app.command("traces")(traces.show)
app.command("audit")(audit.audit)
app.command("export")(export.export)
app.command("replay")(replay.replay)
app.command("diff")(diff.diff)
app.command("certificate")(certificate.certificate)
app.command("conformance")(conformance.conformance)


def main() -> None:
    errors.run("polar", app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Options of `polar` itself."""


@app.command("doctor")
def examine(
    directory: Annotated[Path, typer.Option(help="Where a run would write.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="The gateway's port; 0 for any free one.")] = 0,
    harness: Annotated[str, typer.Option(help="The agent program that is to run.")] = "pi",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Check that everything a run needs is here. Exit code 1 if something required is missing."""
    findings = doctor.examine(directory, port, harness)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if any(finding.required and not finding.ok for finding in findings):
        raise typer.Exit(errors.FAILED)


def _print(findings: list[doctor.Finding]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for finding in findings:
        mark = "[green]ok  [/]" if finding.ok else "[red]FAIL[/]" if finding.required else "[yellow]warn[/]"
        remedy = "" if finding.ok else f": {finding.remedy}"
        console.print(f"{mark}  {finding.name:<11} {finding.detail}{remedy}")
