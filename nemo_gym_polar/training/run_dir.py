# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The directory of a run: config.yaml, metrics.jsonl, summary.json, curve.png, tb/, traces/, checkpoints/, policy/."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from torch.utils.tensorboard import SummaryWriter

from nemo_gym_polar.export.jsonl import write_traces
from nemo_gym_polar.training import checkpoint
from nemo_gym_polar.training.credit import Credit
from nemo_gym_polar.training.curve import draw_curve
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.reports import Evaluation, StepReport, Summary
from nemo_gym_polar.training.run_settings import TrainSettings


class RunDir:
    """Writes as the run goes on; what is there after a crash is whole up to the last line."""

    def __init__(self, path: Path, settings: TrainSettings, *, step: int = 0) -> None:
        """A new run, or one that goes on after `step`: what was written of later steps is forgotten."""
        self.path = path
        self.policy = path / "policy"
        self.journals = path / "journals"
        self._metrics = path / "metrics.jsonl"
        self._lines: list[dict[str, Any]] = []
        for directory in (path, self.journals):
            directory.mkdir(parents=True, exist_ok=True)
        self._forget_after(step)
        config = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        (path / "config.yaml").write_text(config)
        self._board = SummaryWriter(str(path / "tb"), purge_step=step + 1 if step else None)

    def checkpoint(self, step: int) -> Path:
        return self.path / "checkpoints" / f"step-{step}"

    def evaluated(self, evaluation: Evaluation) -> None:
        self._append({"kind": "evaluation", **asdict(evaluation)})
        self._board.add_scalar("evaluation/reward", evaluation.reward, evaluation.step)
        self._board.flush()

    def stepped(self, report: StepReport) -> None:
        self._append({"kind": "step", **asdict(report)})
        for name, value in report.scalars().items():
            self._board.add_scalar(name if "/" in name else f"step/{name}", value, report.step)
        self._board.flush()

    def trained_on(self, step: int, credit: Credit) -> None:
        """The traces that gave gradient, with their advantage and their share of their session."""
        rows = [(one.trace, {"advantage": one.advantage, "share": one.weight}) for one in credit.examples]
        write_traces(self.path / "traces" / f"step-{step}.jsonl", rows)

    def finish(self, summary: Summary) -> None:
        self._board.close()
        draw_curve(self.path / "curve.png", self._lines)
        part = self.path / ".summary.json.part"
        part.write_text(json.dumps(asdict(summary), indent=2) + "\n")
        part.replace(self.path / "summary.json")

    def _append(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        with self._metrics.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _forget_after(self, step: int) -> None:
        if not self._metrics.exists():
            return
        self._lines = [line for line in _whole_lines(self._metrics) if _belongs(line, step)]
        self._metrics.write_text("".join(json.dumps(line) + "\n" for line in self._lines))


def locate(settings: TrainSettings) -> tuple[Path, Path | None]:
    """The directory of a run, and the checkpoint that it goes on from. TrainingError if there is none to go on from, or
    if a new run would write into an old one."""
    name = settings.name or f"{Path(settings.env.tasks).stem}-{settings.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = settings.directory / name
    if settings.resume:
        found = checkpoint.latest(path if settings.resume is True else settings.resume)
        return found.parent.parent, found
    if (path / "config.yaml").exists():
        raise TrainingError(f"name={name}: {path} holds a run already; choose another name, or resume={path}")
    return path, None


def _whole_lines(path: Path) -> Iterable[dict[str, Any]]:
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # the process died while it wrote this one
            return


def _belongs(line: dict[str, Any], step: int) -> bool:
    return line["step"] <= step and line.get("when") != "after"
