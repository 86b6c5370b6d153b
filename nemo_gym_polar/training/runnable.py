# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Can the tasks of a run be run? Asked before anything slow is loaded or begun."""

from __future__ import annotations

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.plan import make_plan
from nemo_gym_polar.tasks import TaskSet, TaskSetError, load_task_set
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.run_settings import TrainSettings
from nemo_gym_polar.training.sampling import make_request


def runnable_tasks(settings: TrainSettings) -> TaskSet:
    """The tasks, all of which could be run as far as can be told without running one. Raises `TrainingError`."""
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
