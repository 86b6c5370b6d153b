# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A run on a terminal: what has happened scrolls by, what is happening stays below and moves."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from nemo_gym_polar.training.progress import PlainProgress
from nemo_gym_polar.training.reports import Evaluation, StepReport, Summary

BARS = "▁▂▃▄▅▆▇█"


class LiveProgress:
    """Shows a run. It is a `training.progress.Progress`; use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rewards: list[float] = []
        self._bars = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
        )
        self._steps = self._bars.add_task("steps", total=None, note="")
        self._sessions = self._bars.add_task("sessions", total=None, note="")
        self._live = Live(self._bars, console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False)

    def sessions(self, stages: Mapping[str, int], done: int, total: int) -> None:
        note = "  ".join(f"{stage} {count}" for stage, count in stages.items() if count)
        self._bars.update(self._sessions, completed=done, total=total, note=note)

    def evaluated(self, evaluation: Evaluation) -> None:
        PlainProgress(self._console.file).evaluated(evaluation)

    def stepped(self, step: StepReport, steps: int) -> None:
        PlainProgress(self._console.file).stepped(step, steps)
        self._rewards.append(step.reward)
        self._bars.update(self._steps, completed=step.step, total=steps, note=sparkline(self._rewards))

    def finished(self, summary: Summary) -> None:
        PlainProgress(self._console.file).finished(summary)


def sparkline(rewards: list[float]) -> str:
    """One character for each reward, 0 the lowest bar and 1 the highest."""
    top = len(BARS) - 1
    return "".join(BARS[round(top * min(max(reward, 0.0), 1.0))] for reward in rewards)
