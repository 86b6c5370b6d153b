# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Task sets: problems with a check of the workspace, split into those to train on and those held out."""

from nemo_gym_polar.tasks.load import load_task_set
from nemo_gym_polar.tasks.row import TaskRow
from nemo_gym_polar.tasks.task_set import TaskSet, TaskSetError

__all__ = ["TaskRow", "TaskSet", "TaskSetError", "load_task_set"]
