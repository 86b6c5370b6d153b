# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A run from its settings to its summary."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.policy.gate import WarmStartError
from nemo_gym_polar.policy.process import EngineProcessError
from nemo_gym_polar.policy.refit import RefitError
from nemo_gym_polar.policy.weights import WeightsError
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.tasks import TaskSet
from nemo_gym_polar.training import checkpoint
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.first_policy import first_policy
from nemo_gym_polar.training.loop import Loop
from nemo_gym_polar.training.progress import PlainProgress, Progress, SessionMeter
from nemo_gym_polar.training.reports import Stopwatch, Summary
from nemo_gym_polar.training.run_dir import RunDir, locate
from nemo_gym_polar.training.run_settings import TrainSettings
from nemo_gym_polar.training.runnable import runnable_tasks
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
    tasks = runnable_tasks(settings)
    path, begin_at = locate(settings)
    stop = asyncio.Event()
    with stop_on_signals(stop, progress.say):
        return await Run(settings, tasks, path, begin_at, progress).go(stop)


class Run:
    """A run's life around its loop: the policy it starts from, what it goes on from, how it ended."""

    def __init__(
        self, settings: TrainSettings, tasks: TaskSet, path: Path, begin_at: Path | None, progress: Progress
    ) -> None:
        self.settings = settings
        self.tasks = tasks
        self.progress = progress
        self.begin_at = begin_at
        self.summary = Summary(str(path), settings.seed, status="failed")  # until proven otherwise
        self.order = TaskOrder(len(tasks.train), settings.seed)
        if begin_at is not None:
            kept = checkpoint.read_state(begin_at)["extra"]
            self.summary.restore(kept["summary"])
            self.order.drawn = kept["drawn"]
        self.stopwatch = Stopwatch(self.summary.seconds)
        self.dir = RunDir(path, settings, step=self.summary.steps)

    async def go(self, stop: asyncio.Event) -> Summary:
        try:
            await self._run(stop)
            self.summary.status = "completed"
        except StoppedError:
            self.summary.status = "interrupted"
        except asyncio.CancelledError:
            self.summary.status = "interrupted"
            raise
        except (*FAULTS, TrainingError) as error:
            self.summary.error = " ".join(str(error).split())
            raise TrainingError(self.summary.error) from error
        finally:
            self.summary.seconds = self.stopwatch.seconds
            self.dir.finish(self.summary)
            self.progress.finished(self.summary)
        return self.summary

    async def _run(self, stop: asyncio.Event) -> None:
        policy = await first_policy(self.settings.policy, self.progress, stop)
        weights = policy if self.begin_at is None else self.begin_at / checkpoint.POLICY
        meter = SessionMeter(self.progress)
        with ThreadPoolExecutor(1, "trainer") as thread:
            trainer = await asyncio.get_running_loop().run_in_executor(thread, self._make_trainer, policy)
            async with running(self.settings, weights, trainer.steps, self.dir, meter.changed) as stack:
                loop = Loop(
                    settings=self.settings,
                    tasks=self.tasks,
                    order=self.order,
                    dir=self.dir,
                    summary=self.summary,
                    stopwatch=self.stopwatch,
                    progress=self.progress,
                    meter=meter,
                    thread=thread,
                    trainer=trainer,
                    stack=stack,
                    watch=Watch(stop, stack.lost),
                    served=trainer.steps,
                )
                await loop.run()

    def _make_trainer(self, policy: Path) -> Trainer:
        temperature = self.settings.engine.sampling.temperature
        trainer = Trainer(policy, self.settings.trainer, seed=self.settings.seed, temperature=temperature)
        if self.begin_at is not None:
            trainer.restore(self.begin_at)
        return trainer
