# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar status` and `polar nodes`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape

from nemo_gym_polar.cli.connection import HERE, AsJson, Token, Url, talk
from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.cli.tables import console, node_table, print_task, session_table, task_table
from nemo_gym_polar.rollouts.api.shapes import SessionShape, TaskLine, TaskShape
from nemo_gym_polar.rollouts.client import RolloutClient


def status(
    task: Annotated[str | None, typer.Argument(help="A task's id; without one, the whole service.")] = None,
    limit: Annotated[int, typer.Option(help="How many tasks to list.", min=1, max=1000)] = 20,
    as_json: AsJson = False,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """What the rollout service is doing, or what became of a task."""
    if task is None:
        whole(*talk(url, token, lambda client: look(client, limit)), as_json)
    else:
        one(*talk(url, token, lambda client: look_at(client, task)), as_json)


async def look(client: RolloutClient, limit: int) -> tuple[dict[str, Any], list[TaskLine]]:
    return await client.status(), await client.tasks(limit=limit)


async def look_at(client: RolloutClient, task: str) -> tuple[TaskShape, list[SessionShape]]:
    return await client.task(task, traces=False), await client.sessions(task)


def whole(found: Mapping[str, Any], tasks: list[TaskLine], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**found, "newest": [one.model_dump(mode="json") for one in tasks]}, indent=2))
        return
    counts = {name: sum(found[name].values()) for name in ("queue", "stages")}
    states = list(found["node_states"].values())
    out = console()
    out.print(
        f"{states.count('ready')} of {len(states)} nodes ready, {counts['stages']} sessions, {counts['queue']} wait"
    )
    if found["trouble"]:
        out.print(f"[red]trouble[/]: {escape(found['trouble'])}; {found['unstored']} results wait at their nodes")
    if tasks:
        out.print(task_table(tasks))


def one(task: TaskShape, sessions: list[SessionShape], as_json: bool) -> None:
    if as_json:
        listed = [session.model_dump(mode="json") for session in sessions]
        typer.echo(json.dumps({**task.model_dump(mode="json"), "sessions": listed}, indent=2))
        return
    print_task(task.model_copy(update={"results": []}))
    console().print(session_table(sessions))


def nodes(
    what: Annotated[str | None, typer.Argument(help="drain: no more sessions for a node.")] = None,
    node: Annotated[str | None, typer.Argument(help="The node's id.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Give up what it still runs, and forget it.")] = False,
    as_json: AsJson = False,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """List the service's nodes, or drain one."""
    if what not in (None, "drain") or (what is None and remove):
        raise UsageError(f"polar nodes {what or '--remove'} is no command: say polar nodes, or polar nodes drain NODE")
    if what == "drain" and node is None:
        raise UsageError("polar nodes drain needs the node's id; polar nodes lists them")
    if node is not None:
        found = [talk(url, token, lambda client: client.drain(str(node), remove=remove))]
    else:
        found = talk(url, token, lambda client: client.nodes())
    if as_json:
        typer.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=2))
    elif found:
        console().print(node_table(found))
    else:
        typer.echo("no nodes; start one with polar serve --join")
