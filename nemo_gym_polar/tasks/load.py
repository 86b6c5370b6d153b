# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How to get a task set: by the name of a bundled one, or by the path of a JSONL file."""

from __future__ import annotations

from pathlib import Path

from nemo_gym_polar.tasks.bundled import BUNDLED
from nemo_gym_polar.tasks.jsonl import read_rows
from nemo_gym_polar.tasks.task_set import TaskSet, TaskSetError


def load_task_set(name_or_path: str | Path, *, seed: int = 0) -> TaskSet:
    """A bundled set by name, drawn by `seed`, or the rows of a JSONL file."""
    name = str(name_or_path)
    if name in BUNDLED:
        return TaskSet.of(name, BUNDLED[name](seed))
    path = Path(name_or_path)
    if path.suffix != ".jsonl":
        known = ", ".join(sorted(BUNDLED))
        raise TaskSetError(
            f"tasks={name!r} is neither a bundled task set ({known}) nor a .jsonl file; give one of them"
        )
    return TaskSet.of(path.stem, read_rows(path))
