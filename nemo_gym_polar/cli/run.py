# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A training run in this terminal, from settings to the table at its end."""

from __future__ import annotations

import asyncio
import sys

import typer
from rich.console import Console
from rich.table import Table

from nemo_gym_polar.cli.errors import FAILED, INTERRUPTED
from nemo_gym_polar.cli.live import LiveProgress
from nemo_gym_polar.training.progress import PlainProgress
from nemo_gym_polar.training.reports import Status, Summary
from nemo_gym_polar.training.run import train
from nemo_gym_polar.training.run_settings import TrainSettings

EXIT_CODES: dict[Status, int] = {"completed": 0, "interrupted": INTERRUPTED, "failed": FAILED, "running": FAILED}


def run(settings: TrainSettings) -> None:
    """Train; leaves with a code that says whether the run came to its end."""
    summary = asyncio.run(_train(settings))
    Console(highlight=False).print(result(summary))
    if code := EXIT_CODES[summary.status]:
        raise typer.Exit(code)


async def _train(settings: TrainSettings) -> Summary:
    if not sys.stdout.isatty():
        return await train(settings, PlainProgress())
    with LiveProgress(Console()) as progress:
        return await train(settings, progress)


def result(summary: Summary) -> Table:
    """Held-out reward before and after, and what it took."""
    table = Table(title=f"held-out reward, seed {summary.seed}", title_justify="left", box=None, pad_edge=False)
    for name in ("before", "after", "steps", "sessions", "trained tokens", "seconds"):
        table.add_column(name, justify="right")
    table.add_row(
        _reward(summary.reward_before),
        _reward(summary.reward_after),
        str(summary.steps),
        str(summary.sessions),
        str(summary.trained_tokens),
        f"{summary.seconds:.0f}",
    )
    return table


def _reward(reward: float | None) -> str:
    return "not measured" if reward is None else f"{reward:.3f}"
