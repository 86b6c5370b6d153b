# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar submit` and `polar cancel`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from nemo_gym_polar.cli.connection import HERE, AsJson, Token, Url, talk
from nemo_gym_polar.cli.errors import FAILED, CommandError, UsageError
from nemo_gym_polar.cli.tables import print_task
from nemo_gym_polar.rollouts.api.shapes import TaskShape
from nemo_gym_polar.rollouts.client import RolloutClient
from nemo_gym_polar.rollouts.control.records import TaskState


def submit(
    task: Annotated[str, typer.Argument(help="A task as JSON or YAML: a file, or - for stdin.")],
    wait: Annotated[bool, typer.Option("--wait", help="Until the task has ended; exit code 1 if it failed.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait at most.", min=0)] = None,
    patience: Annotated[float, typer.Option(help="Seconds to go on asking a service that is full.", min=0)] = 0.0,
    as_json: AsJson = False,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """Give a task to the rollout service. The same task again is the same task."""
    request = read_task(task)

    async def work(client: RolloutClient) -> TaskShape:
        accepted = await client.submit(request, patience=patience)
        if not wait:
            return await client.task(accepted.task_id, traces=False)
        return await client.wait(accepted.task_id, timeout=timeout, traces=False)

    try:
        found = talk(url, token, work)
    except TimeoutError:
        raise CommandError(f"task {request.get('task_id')} has not ended in {timeout:g} s; it goes on") from None
    report(found, as_json)
    if found.status in (TaskState.FAILED, TaskState.CANCELLED):
        raise typer.Exit(FAILED)


def cancel(
    task: Annotated[str, typer.Argument(help="The task's id.")],
    as_json: AsJson = False,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """End a task's sessions, wherever they are."""
    report(talk(url, token, lambda client: client.cancel(task)), as_json)


def report(task: TaskShape, as_json: bool) -> None:
    if as_json:
        typer.echo(task.model_dump_json(indent=2))
    else:
        print_task(task)


def read_task(name: str) -> Mapping[str, Any]:
    """JSON is YAML, so one reader does for both. Raises `UsageError`."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file {name}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} can't be read: {error}") from error
    try:
        found = yaml.safe_load(text)
        wrong = next(unsayable(found), None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: what looks like a date and is none
        raise UsageError(f"{name} is neither JSON nor YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, Mapping):
        raise UsageError(f"{name} is no task: it must hold an object with task_id and instruction")
    if wrong:
        raise UsageError(f"{name}: {wrong}")
    return found


def unsayable(value: object, place: str = "") -> Iterator[str]:
    """What YAML can say and JSON can't, by its place. Dates become text."""
    match value:
        case Mapping():
            for key, below in value.items():
                if isinstance(key, str):
                    yield from unsayable(below, f"{place}.{key}".removeprefix("."))
                else:
                    yield f"{place or 'the task'} has the key {key!r}, which is no text; put it in quotes"
        case list():
            for number, below in enumerate(value):
                yield from unsayable(below, f"{place}.{number}")
        case float() if not math.isfinite(value):
            yield f"{place}={value!r} is no number that JSON has"
        case None | str() | bool() | int() | float() | date():
            pass
        case _:
            yield f"{place}={value!r} is a {type(value).__name__}, which JSON does not have; write it as text"
