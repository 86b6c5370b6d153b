# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The loop itself: evaluate, then sample, learn and hand over weights step by step, evaluate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Literal

from nemo_gym_polar.rollouts.service import GroupResult
from nemo_gym_polar.tasks import TaskRow, TaskSet
from nemo_gym_polar.training import checkpoint
from nemo_gym_polar.training.progress import Progress, SessionMeter
from nemo_gym_polar.training.reports import Stopwatch, Summary, report_evaluation, report_step
from nemo_gym_polar.training.run_dir import RunDir
from nemo_gym_polar.training.run_settings import TrainSettings
from nemo_gym_polar.training.sampling import choose_held_out, make_request, run_groups
from nemo_gym_polar.training.stack import Stack
from nemo_gym_polar.training.task_order import TaskOrder
from nemo_gym_polar.training.trainer import Trainer
from nemo_gym_polar.training.watch import Watch


@dataclass(slots=True)
class Loop:
    """Everything that a run needs is up. `served` is the step whose weights the engine samples from.

    The trainer's calls have a `thread` of their own; everything else is in the event loop.
    """

    settings: TrainSettings
    tasks: TaskSet
    order: TaskOrder
    dir: RunDir
    summary: Summary
    stopwatch: Stopwatch
    progress: Progress
    meter: SessionMeter
    thread: ThreadPoolExecutor
    trainer: Trainer
    stack: Stack
    watch: Watch
    served: int

    async def run(self) -> None:
        """Whatever ends this, what was learnt until then is saved."""
        try:
            if self.summary.reward_before is None:
                await self._evaluate("before")
            while self.trainer.steps < self.settings.trainer.steps:
                await self._step()
                if self.trainer.steps % self.settings.trainer.checkpoint_every == 0:
                    await self._save()
            await self._evaluate("after")
        finally:
            await self._save()

    async def _step(self) -> None:
        pushed = await self._hand_over()
        rows = [self.tasks.train[index] for index in self.order.peek(self.settings.env.groups)]
        groups, sampled = await self._sample(rows, self.settings.env.samples)
        metrics = await self._in_thread(lambda: self.trainer.step([group.sessions for group in groups]))
        self.order.drawn += len(rows)
        report = report_step(groups, metrics, rollout_seconds=sampled, push_seconds=pushed)
        self.summary.count_step(report)
        self.dir.stepped(report)
        await asyncio.to_thread(self.dir.trained_on, metrics.step, metrics.credit)
        self.progress.stepped(report, self.settings.trainer.steps)

    async def _evaluate(self, when: Literal["before", "after"]) -> None:
        rows = choose_held_out(self.tasks.heldout, self.settings)
        if not rows:
            self.progress.say(f"no held-out reward {when}: the tasks have no held-out ones")
            return
        await self._hand_over()
        groups, seconds = await self._sample(rows, self.settings.env.heldout_samples)
        evaluation = report_evaluation(when, self.trainer.steps, groups, seconds)
        self.summary.count_evaluation(evaluation)
        self.dir.evaluated(evaluation)
        self.progress.evaluated(evaluation)

    async def _sample(self, rows: Sequence[TaskRow], samples: int) -> tuple[list[GroupResult], float]:
        """The groups of `rows` and the seconds that they took."""
        began = time.monotonic()
        self.meter.begin(len(rows) * samples)
        requests = [make_request(row, samples, self.settings) for row in rows]
        groups = await self.watch.over(run_groups(self.stack.service, requests))
        return groups, time.monotonic() - began

    async def _hand_over(self) -> float:
        """Have the engine sample from the trainer's weights, if it doesn't yet; the seconds that took."""
        if self.served == self.trainer.steps:
            return 0.0
        began = time.monotonic()
        await self._in_thread(lambda: self.trainer.save_policy(self.dir.policy))
        await self.stack.push(self.dir.policy, self.trainer.steps)
        self.served = self.trainer.steps
        return time.monotonic() - began

    async def _save(self) -> None:
        """The weights as a policy, and a checkpoint to go on from."""
        self.summary.seconds = self.stopwatch.seconds
        kept = {"drawn": self.order.drawn, "summary": asdict(self.summary)}
        target = self.dir.checkpoint(self.trainer.steps)
        await self._in_thread(lambda: self.trainer.save_policy(self.dir.policy))
        await self._in_thread(lambda: self.trainer.save(target, kept))
        checkpoint.prune(target.parent, self.settings.trainer.keep_checkpoints)

    async def _in_thread[T](self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.thread, work)
