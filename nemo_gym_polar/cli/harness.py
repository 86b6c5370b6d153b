# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar harness`: the agent programs, at the versions that this package was tested with."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from nemo_gym_polar.cli.errors import FAILED, UsageError
from nemo_gym_polar.harnesses.base import Harness, HarnessError
from nemo_gym_polar.harnesses.registry import HARNESSES, make_harness

if TYPE_CHECKING:
    from nemo_gym_polar.rollouts.trial import Report

app = typer.Typer(no_args_is_help=True, help="Install, list and try agent programs.")

SHELL = "shell"  # any command: nothing to install, nothing to try
Names = Annotated[list[str] | None, typer.Argument(help="Such as pi or qwen_code.")]
All = Annotated[bool, typer.Option("--all", help="All that are known.")]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]


@app.command()
def install(names: Names = None, every: All = False) -> None:
    """Install agent programs into the cache (POLAR_CACHE_DIR), unless they are there.

    One that fails doesn't keep the others from being installed.
    """
    failed = [name for name, harness in chosen(names, every).items() if not put(name, harness)]
    if failed:
        raise typer.Exit(FAILED)


def put(name: str, harness: Harness) -> bool:
    if harness.installed():
        typer.echo(f"{name} is installed")
        return True
    typer.echo(f"installing {name}")
    started = time.monotonic()
    try:
        harness.install()
    except HarnessError as error:
        typer.echo(f"{name}: {error}", err=True)
        return False
    typer.echo(f"installed {name} in {time.monotonic() - started:.0f} s")
    return True


@app.command("list")
def list_(as_json: Json = False) -> None:
    """Say which agent programs are known, at which version, what they speak, and which are installed."""
    rows = [row(name) for name in sorted(HARNESSES)]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for found in rows:
        state = "installed" if found["installed"] else "not installed"
        typer.echo(f"{found['name']:<12} {found['version'] or '-':<10} {state:<14} {', '.join(found['dialects'])}")


def row(name: str) -> dict[str, Any]:
    harness = make_harness(name, {"command": "true"} if name == SHELL else {})
    about = harness.about
    return {
        "name": name,
        "version": about.version,
        "dialects": list(about.dialects),
        "installed": harness.installed(),
    }


@app.command()
def check(
    names: Names = None,
    every: All = False,
    settings: Annotated[str, typer.Option(help='Their settings as JSON: \'{"api": "anthropic"}\'.')] = "{}",
    runtime: Annotated[str | None, typer.Option(help="bubblewrap or local; the first that works.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that one may take.", min=1)] = 180.0,
    as_json: Json = False,
) -> None:
    """Try agent programs, in seconds: each does a small task in a sandbox, with a scripted model behind a real gateway.

    Exit code 1 if something did not work.
    """
    # Not at the top: the other commands should not wait for a web framework.
    from nemo_gym_polar.cli.trials import run_trials

    reports = run_trials(list(chosen(names, every)), options(settings), runtime, timeout)
    if as_json:
        typer.echo(json.dumps([report.as_dict() for report in reports], indent=2))
    else:
        show(reports)
    if not all(report.ok for report in reports):
        raise typer.Exit(FAILED)


def show(reports: list[Report]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for report in reports:
        state = "[green]works[/]" if report.ok else "[red]does not work[/]"
        console.print(f"{report.harness} {state} ({report.seconds} s)")
        for finding in report.findings:
            mark = "[green]ok  [/]" if finding.ok else "[red]FAIL[/]"
            console.print(f"  {mark}  {finding.name:<8}", end=" ")
            console.print(finding.detail, markup=False)


def chosen(names: list[str] | None, every: bool) -> dict[str, Harness]:
    """The harnesses that were asked for, each once; every name is looked at before anything is done."""
    if bool(names) is every:
        known = ", ".join(sorted(HARNESSES.keys() - {SHELL}))
        raise UsageError(f"Name agent programs ({known}), or give --all.")
    wanted = sorted(HARNESSES.keys() - {SHELL}) if every else list(dict.fromkeys(names or ()))
    return {name: make_harness(name) for name in wanted}


def options(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--settings: {text!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"--settings: {text!r} is not a JSON object")
    return value
