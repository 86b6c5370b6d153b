# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar watch`: what happens, as it happens."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nemo_gym_polar.cli.connection import HERE, Token, Url, talk
from nemo_gym_polar.cli.errors import INTERRUPTED
from nemo_gym_polar.cli.tables import coloured
from nemo_gym_polar.rollouts.client import RolloutClient
from nemo_gym_polar.rollouts.control.records import EventRecord

SHOWN = 15  # tasks, and events below them, where there is room
FEW = 3  # events that are shown in any case
ENDS = ("task.completed", "task.failed", "task.cancelled")


def watch(
    task: Annotated[str | None, typer.Argument(help="A task's id; it ends with the task.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="From the first event on, not from now.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One event a line, for programs.")] = False,
    url: Url = HERE,
    token: Token = None,
) -> None:
    """Follow a task, or all of them, live."""
    try:
        talk(url, token, lambda client: follow(client, task, everything or task is not None, as_json))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


async def follow(client: RolloutClient, task: str | None, everything: bool, as_json: bool) -> None:
    if task is not None:
        await client.task(task, traces=False)  # an unknown one is refused
    events = client.events(0 if everything else await newest(client), task_id=task)
    async with contextlib.aclosing(events):
        if sys.stdout.isatty() and not as_json:
            await show(events, task)
        else:
            await tell(events, task, as_json)


async def newest(client: RolloutClient) -> int:
    """The number of the last event so far."""
    return int((await client.status())["last_event"])


async def tell(events: AsyncIterator[EventRecord], task: str | None, as_json: bool) -> None:
    async for event in events:
        typer.echo(event.model_dump_json() if as_json else line(event))
        if task is not None and event.kind in ENDS:
            return


async def show(events: AsyncIterator[EventRecord], task: str | None) -> None:
    picture, console = Picture(), Console(highlight=False)
    with Live(picture.drawn(console.height), console=console, refresh_per_second=8) as live:
        async for event in events:
            picture.take(event)
            live.update(picture.drawn(console.height))
            if task is not None and event.kind in ENDS:
                return


class Picture:
    """Sessions of each live task by state, and the newest events."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, str]] = {}
        self.states: dict[str, str] = {}
        self.lines: list[str] = []

    def take(self, event: EventRecord) -> None:
        self.lines = [*self.lines, line(event)][-SHOWN:]
        if event.task_id is None:
            return
        what, _, state = event.kind.partition(".")
        if what == "session" and event.session_id:
            self.states.setdefault(event.task_id, "running")  # it began before we looked
            self.sessions.setdefault(event.task_id, {})[event.session_id] = state
        elif what == "task":
            self.states[event.task_id] = "running" if state == "submitted" else state

    def drawn(self, height: int) -> Group:
        """For a terminal of that many lines: what is too much would be cut off below, where the newest is."""
        table = Table(box=None, pad_edge=False)
        for name in ("task", "status", "sessions"):
            table.add_column(name, no_wrap=True)
        shown = list(self.states)[-max(1, min(SHOWN, height - FEW - 3)) :]
        for task_id in shown:
            counts = Counter(self.sessions.get(task_id, {}).values())
            stages = "  ".join(f"{state} {count}" for state, count in sorted(counts.items()))
            table.add_row(Text(task_id), coloured(self.states[task_id]), stages)
        room = max(FEW, height - len(shown) - 3)
        return Group(table, Text("\n".join(["", *self.lines[-room:]]), no_wrap=True, overflow="ellipsis"))


def line(event: EventRecord) -> str:
    at = datetime.fromtimestamp(event.time).strftime("%H:%M:%S")
    place = " ".join(name for name in (event.task_id, event.session_id, event.node_id) if name)
    told = {name: event.data[name] for name in ("sample", "reward", "error", "reason", "lost") if name in event.data}
    about = " ".join(f"{name}={value}" for name, value in told.items())
    return f"{at} {event.kind:<18} {place} {about}".rstrip()
