# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks, sessions and nodes as tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from nemo_gym_polar.rollouts.api.shapes import NodeShape, SessionShape, TaskLine, TaskShape

WIDE = 240
COLOURS = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "COMPLETED": "green",
    "ERROR": "red",
    "TIMEOUT": "yellow",
    "CANCELLED": "yellow",
    "ready": "green",
    "lost": "red",
    "draining": "yellow",
}


def console() -> Console:
    """Whole lines for a program that reads them."""
    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else WIDE)


def print_task(task: TaskShape) -> None:
    done = f"{task.completed_sessions} of {task.total_sessions} sessions ended, {task.usable_sessions} usable"
    console().print(f"task {escape(task.task_id)}: {coloured(task.status)}, {done}")
    for odd in task.first_prompt_mismatches:
        differs = "" if odd.own is None else f": {odd.own!r}, not {odd.theirs!r}"
        console().print(escape(f"sample {odd.sample} begins with another prompt than its group{differs}"))
    if task.results:
        console().print(session_table(task.results))


def session_table(sessions: Sequence[SessionShape]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("sample", "attempt", "session", "state", "reward", "node", "error"):
        justify: JustifyMethod = "right" if name in ("sample", "attempt", "reward") else "left"
        table.add_column(name, justify=justify, overflow="fold")
    for one in sessions:
        reward = "" if one.reward is None else f"{one.reward:.3f}"
        row = (str(one.sample), str(one.attempt), one.session_id, coloured(one.state), reward)
        table.add_row(*row, escape(one.node_id or ""), escape(one.error or one.lost or ""))
    return table


def task_table(tasks: Sequence[TaskLine]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("task", "status", "ended", "usable", "sessions", "harness", "since"):
        table.add_column(name, justify="right" if name in ("ended", "usable", "sessions") else "left")
    for one in tasks:
        numbers = (str(one.completed_sessions), str(one.usable_sessions), str(one.total_sessions))
        since = datetime.fromtimestamp(one.created_at).strftime("%m-%d %H:%M:%S")
        table.add_row(escape(one.task_id), coloured(one.status), *numbers, one.harness or "", since)
    return table


def node_table(nodes: Sequence[NodeShape]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("node", "kind", "state", "sessions", "capacity", "pressure", "weights", "address", "stages"):
        table.add_column(name, justify="right" if name in ("sessions", "capacity", "pressure") else "left")
    for one in nodes:
        pressure = "" if one.pressure is None else f"{one.pressure:.2f}"
        numbers = (str(one.sessions), str(one.capacity), pressure)
        stages = " ".join(f"{stage} {count}" for stage, count in one.stages.items() if count)
        about = (one.policy_version or "", one.gateway_url or "", stages)
        table.add_row(escape(one.node_id), one.kind, coloured(one.state), *numbers, *about)
    return table


def coloured(state: str) -> str:
    colour = COLOURS.get(state)
    return f"[{colour}]{state}[/]" if colour else str(state)
