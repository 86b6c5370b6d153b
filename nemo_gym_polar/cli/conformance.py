# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar conformance`: do the providers' own clients find a gateway to be the real thing?"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from nemo_gym_polar.cli.errors import FAILED, UsageError

if TYPE_CHECKING:
    from nemo_gym_polar.conformance import Subject

UNAUTHORIZED = 401
CLIENTS = {"openai": "openai", "anthropic": "anthropic", "google.genai": "google-genai"}


def conformance(
    url: Annotated[str, typer.Argument(help="A session's base URL, as `polar serve` prints it.")],
    key: Annotated[str, typer.Option(envvar="POLAR_SESSION_KEY", help="The session's API key.")],
    model: Annotated[str, typer.Option(help="The model's name.")] = "polar-policy",
    dialect: Annotated[list[str] | None, typer.Option(help="Only these cases; again for each.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Drive a running gateway with the official clients of OpenAI, Anthropic and Google, and print what they found.

    It makes real calls, so give it a session of its own. Exit code 1 if a case fails.
    """
    _require_clients()
    from nemo_gym_polar.conformance import CASES, Subject, run_cases

    known = sorted({case.dialect for case in CASES})
    if unknown := set(dialect or ()) - set(known):
        raise UsageError(f"--dialect {sorted(unknown)[0]!r} is unknown; choose from {', '.join(known)}")
    subject = Subject(url.rstrip("/"), key, model)
    _require_answer(subject)
    began = time.monotonic()
    cases = [case for case in CASES if not dialect or case.dialect in dialect]
    outcomes = list(run_cases(subject, cases))
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if as_json:
        typer.echo(json.dumps([asdict(outcome) for outcome in outcomes], indent=2))
    else:
        table = Table("", "dialect", "case", "remark", box=None)
        for outcome in outcomes:
            mark = "[green]ok[/]" if outcome.ok else "[red]FAIL[/]"
            table.add_row(mark, outcome.dialect, outcome.name, outcome.detail)
        Console(highlight=False).print(table)
        typer.echo(f"{len(outcomes) - len(failed)} of {len(outcomes)} in {time.monotonic() - began:.0f} s")
    if failed:
        raise typer.Exit(FAILED)


def _require_answer(subject: Subject) -> None:
    """Fifty failures that all say the same help nobody."""
    from nemo_gym_polar.conformance.wire import ask

    if not subject.url.startswith(("http://", "https://")):
        raise UsageError(f"URL={subject.url!r} does not begin with http:// or https://")
    try:
        status = ask(subject, "GET", "/v1/models")
    except OSError as error:
        raise UsageError(f"nothing answers at {subject.url}: {error}") from error
    if status == UNAUTHORIZED:
        raise UsageError(f"the key does not open {subject.url}; `polar serve` prints the one that does")


def _require_clients() -> None:
    missing = [package for module, package in CLIENTS.items() if not _installed(module)]
    if missing:
        raise UsageError(f"{', '.join(missing)} missing: pip install 'nemo-gym-polar[conformance]'")


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False
