# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar prune`: remove what has ended from a service's store."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import ValidationError

from nemo_gym_polar.cli.connection import HERE, AsJson, Token, Url, talk
from nemo_gym_polar.cli.errors import FAILED, UsageError
from nemo_gym_polar.rollouts.retention.pruned import Pruned
from nemo_gym_polar.rollouts.retention.settings import Bounds


def prune(
    keep_days: Annotated[float | None, typer.Option(help="Remove what ended longer ago.")] = None,
    keep_tasks: Annotated[int | None, typer.Option(help="Keep so many ended tasks, the newest.")] = None,
    journals: Annotated[bool, typer.Option("--journals", help="The service's own journals of them, too.")] = False,
    given_up_callbacks: Annotated[
        bool, typer.Option("--given-up-callbacks", help="Also tasks of which a callback was given up.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: AsJson = False,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """Remove tasks that have ended, with their sessions, events and files."""
    if keep_days is None and keep_tasks is None:
        raise UsageError("polar prune removes nothing by itself: say --keep-days or --keep-tasks")
    try:
        bounds = Bounds(
            keep_days=keep_days, keep_tasks=keep_tasks, journals=journals, given_up_callbacks=given_up_callbacks
        )
    except ValidationError as error:
        raise UsageError(problem(error)) from error
    done = talk(url, token, lambda client: client.prune(bounds, dry_run=dry_run))
    typer.echo(done.model_dump_json(indent=2) if as_json else said(done))
    if done.failed:
        raise typer.Exit(FAILED)


def problem(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"--{str(first['loc'][0]).replace('_', '-')} {first['input']}: {first['msg']}"


def said(done: Pruned) -> str:
    verb = "would remove" if done.dry_run else "removed"
    held = f"; {done.held} kept for callbacks that were not delivered" if done.held else ""
    failed = f"; {done.failed} kept, their files can't be removed (the service's log says why)" if done.failed else ""
    return f"{verb} {done.tasks} tasks with {done.sessions} sessions{held}{failed}"
