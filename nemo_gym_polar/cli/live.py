# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A run on a terminal: what has happened scrolls by, what is happening stays below and moves."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.training.progress import PlainProgress
from nemo_gym_polar.training.reports import StepReport

BARS = "▁▂▃▄▅▆▇█"


class LiveProgress(PlainProgress):
    """The plain lines above, bars for the step and its sessions below. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._rewards: list[float] = []
        self._bars = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            refresh_per_second=4,
        )
        self._steps = self._bars.add_task("steps", total=None, note="")
        self._sessions = self._bars.add_task("sessions", total=None, note="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def sessions(self, stages: Mapping[Stage, int], done: int, total: int) -> None:
        note = "  ".join(f"{stage} {count}" for stage, count in stages.items() if count)
        self._bars.update(self._sessions, completed=done, total=total, note=note)

    def stepped(self, step: StepReport, steps: int) -> None:
        super().stepped(step, steps)
        self._rewards.append(step.reward)
        self._bars.update(self._steps, completed=step.step, total=steps, note=sparkline(self._rewards))


def sparkline(rewards: list[float]) -> str:
    """One character for each reward, 0 the lowest bar and 1 the highest."""
    top = len(BARS) - 1
    return "".join(BARS[round(top * min(max(reward, 0.0), 1.0))] for reward in rewards)
