# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a run tells whoever watches it, and the plain way to show that: one line each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TextIO

from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.training.reports import Evaluation, StepReport, Summary


class Progress(Protocol):
    """Called in the event loop's thread; must not block."""

    def say(self, line: str) -> None:
        """Something worth a line: a phase begins, the policy is being made, the run is interrupted."""

    def sessions(self, stages: Mapping[Stage, int], done: int, total: int) -> None:
        """How many sessions are in each stage; `done` of `total` of this batch have ended. Called often."""

    def evaluated(self, evaluation: Evaluation) -> None: ...

    def stepped(self, step: StepReport, steps: int) -> None: ...

    def finished(self, summary: Summary) -> None: ...


class SessionMeter:
    """Tells how many sessions of a batch have ended, from the numbers in each stage."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._total = self._seen = 0

    def begin(self, total: int) -> None:
        self._total, self._seen = total, 0

    def changed(self, stages: Mapping[Stage, int]) -> None:
        # A batch's sessions all begin to queue before the first one can end.
        unfinished = sum(stages.values())
        self._seen = max(self._seen, unfinished)
        self._progress.sessions(stages, self._seen - unfinished, self._total)


@dataclass(slots=True)
class PlainProgress:
    """For logs and pipes: every line goes through `say`."""

    out: TextIO = sys.stdout

    def say(self, line: str) -> None:
        print(line, file=self.out, flush=True)

    def sessions(self, stages: Mapping[Stage, int], done: int, total: int) -> None:
        """Would be a line for every change; the batch's own line says enough."""

    def evaluated(self, evaluation: Evaluation) -> None:
        self.say(
            f"held-out reward {evaluation.when}: {evaluation.reward:.3f} ± {evaluation.standard_error:.3f}"
            f" ({evaluation.sessions} sessions, {evaluation.seconds:.0f} s)"
        )

    def stepped(self, step: StepReport, steps: int) -> None:
        self.say(
            f"step {step.step}/{steps}  reward {step.reward:.3f}  turns {step.turns:.2f}"
            f"  no variance {step.zero_variance_groups}/{step.groups}  tokens {step.trained_tokens}"
            f"  lr {step.lr:.2g}  norm {step.gradient_norm:.2f}"
            f"  rollouts {step.rollout_seconds:.1f} s  training {step.train_seconds:.1f} s"
        )

    def finished(self, summary: Summary) -> None:
        before, after = map(_reward, (summary.reward_before, summary.reward_after))
        size = f"{summary.steps} steps, {summary.sessions} sessions, {summary.seconds:.0f} s"
        self.say(f"{summary.status} after {size}")
        self.say(f"held-out reward: before {before}, after {after}")
        self.say(f"written to {summary.directory}")


def _reward(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
