# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A run from its settings to its summary: evaluate, then sample, learn and hand over weights step by step, evaluate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.policy.gate import WarmStartError
from nemo_gym_polar.policy.process import EngineProcessError
from nemo_gym_polar.policy.refit import RefitError
from nemo_gym_polar.policy.weights import WeightsError
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.plan import make_plan
from nemo_gym_polar.rollouts.service import GroupResult
from nemo_gym_polar.rollouts.stages import Gauges
from nemo_gym_polar.tasks import TaskRow, TaskSet, TaskSetError, load_task_set
from nemo_gym_polar.training import checkpoint
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.first_policy import first_policy
from nemo_gym_polar.training.progress import PlainProgress, Progress
from nemo_gym_polar.training.reports import Summary, report_evaluation, report_step
from nemo_gym_polar.training.run_dir import RunDir, locate
from nemo_gym_polar.training.run_settings import TrainSettings
from nemo_gym_polar.training.sampling import choose_held_out, make_request, run_groups
from nemo_gym_polar.training.stack import running
from nemo_gym_polar.training.task_order import TaskOrder
from nemo_gym_polar.training.trainer import Trainer
from nemo_gym_polar.training.watch import StoppedError, Watch, stop_on_signals

FAULTS = (EngineProcessError, RefitError, RolloutError, EngineError, JournalError, WarmStartError, WeightsError)


async def train(settings: TrainSettings, progress: Progress | None = None) -> Summary:
    """Run to the end, or until SIGINT or SIGTERM, which leave a checkpoint and the status `interrupted`.

    Raises TrainingError, one line, for what the user or the world must mend; summary.json says `failed` then.
    """
    progress = progress or PlainProgress()
    tasks = _tasks(settings)
    path, begin_at = locate(settings)
    stop = asyncio.Event()
    with stop_on_signals(stop, progress.say), ThreadPoolExecutor(1, "trainer") as thread:
        return await Run(settings, tasks, path, begin_at, progress, stop, thread).go()


def _tasks(settings: TrainSettings) -> TaskSet:
    """The tasks, all of which could be run as far as can be told without running one."""
    try:
        tasks = load_task_set(settings.env.tasks, seed=settings.seed)
        for row in (*tasks.train, *tasks.heldout):
            make_plan(make_request(row, 1, settings))
    except TaskSetError as error:
        raise TrainingError(f"env.tasks: {error}") from error
    except RolloutError as error:
        raise TrainingError(str(error)) from error
    if not tasks.train:
        raise TrainingError(f"env.tasks={settings.env.tasks}: there is no task of the split train; add some")
    return tasks


class Run:
    """One run. The trainer's calls have a thread of their own; everything else is in the event loop."""

    def __init__(
        self,
        settings: TrainSettings,
        tasks: TaskSet,
        path: Path,
        begin_at: Path | None,
        progress: Progress,
        stop: asyncio.Event,
        thread: ThreadPoolExecutor,
    ) -> None:
        self.settings = settings
        self.tasks = tasks
        self.progress = progress
        self.begin_at = begin_at
        self.summary = Summary(str(path), settings.seed)
        self.order = TaskOrder(len(tasks.train), settings.seed)
        self._started, self._seconds_before = time.monotonic(), 0.0
        self._stop = stop
        self._thread = thread
        self._batch = self._seen = 0
        if begin_at is not None:
            self._restore(checkpoint.read_state(begin_at)["extra"])
        self.dir = RunDir(path, settings, step=self.summary.steps)

    async def go(self) -> Summary:
        self.summary.status = "failed"  # until proven otherwise
        try:
            await self._run()
            self.summary.status = "completed"
        except StoppedError:
            self.summary.status = "interrupted"
        except (*FAULTS, TrainingError) as error:
            self.summary.error = " ".join(str(error).split())
            raise TrainingError(self.summary.error) from error
        finally:
            self._keep_time()
            self.dir.finish(self.summary)
            self.progress.finished(self.summary)
        return self.summary

    async def _run(self) -> None:
        policy = await first_policy(self.settings.policy, self.progress, self._stop)
        self.trainer = await self._in_thread(lambda: self._make_trainer(policy))
        weights = policy if self.begin_at is None else self.begin_at / checkpoint.POLICY
        self.served = self.trainer.steps
        async with running(self.settings, weights, self.served, self.dir, self._on_change) as stack:
            self.stack, self.watch = stack, Watch(self._stop, stack.lost)
            try:
                await self._steps()
            finally:
                await self._save()

    async def _steps(self) -> None:
        if self.summary.reward_before is None:
            await self._evaluate("before")
        while self.trainer.steps < self.settings.trainer.steps:
            await self._step()
            if self.trainer.steps % self.settings.trainer.checkpoint_every == 0:
                await self._save()
        await self._evaluate("after")

    async def _step(self) -> None:
        pushed = await self._hand_over()
        rows = [self.tasks.train[index] for index in self.order.peek(self.settings.env.groups)]
        groups, sampled = await self._sample(rows, self.settings.env.samples)
        metrics = await self._in_thread(lambda: self.trainer.step([group.sessions for group in groups]))
        self.order.drawn += len(rows)
        report = report_step(groups, metrics, rollout_seconds=sampled, push_seconds=pushed)
        await asyncio.to_thread(self.dir.trained_on, metrics.step, metrics.credit)
        self.summary.count_step(report)
        self.dir.stepped(report)
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
        self._batch, self._seen = len(rows) * samples, 0
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
        self._keep_time()
        kept = {"drawn": self.order.drawn, "summary": asdict(self.summary)}
        target = self.dir.checkpoint(self.trainer.steps)
        await self._in_thread(lambda: self.trainer.save_policy(self.dir.policy))
        await self._in_thread(lambda: self.trainer.save(target, kept))
        checkpoint.prune(target.parent, self.settings.trainer.keep_checkpoints)

    def _make_trainer(self, policy: Path) -> Trainer:
        temperature = self.settings.engine.sampling.temperature
        trainer = Trainer(policy, self.settings.trainer, seed=self.settings.seed, temperature=temperature)
        if self.begin_at is not None:
            trainer.restore(self.begin_at)
        return trainer

    def _restore(self, kept: dict[str, Any]) -> None:
        self.summary.restore(kept["summary"])
        self.order.drawn = kept["drawn"]
        self._seconds_before = self.summary.seconds

    def _keep_time(self) -> None:
        self.summary.seconds = self._seconds_before + time.monotonic() - self._started

    def _on_change(self, stages: Gauges) -> None:
        # A batch's sessions all begin to queue before the first one can end.
        unfinished = sum(stages.values())
        self._seen = max(self._seen, unfinished)
        self.progress.sessions(stages, self._seen - unfinished, self._batch)

    async def _in_thread[T](self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
