# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A task set as a NeMo Gym data set.

    python -m nemo_gym_polar.environment.dataset TASKS [--split train|heldout] [--seed N] > rows.jsonl

TASKS is the name of a bundled task set or the path of a JSONL file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence

import orjson

from nemo_gym_polar.environment.rows import row
from nemo_gym_polar.tasks.load import load_task_set
from nemo_gym_polar.tasks.row import TaskRow
from nemo_gym_polar.tasks.task_set import TaskSetError

EXAMPLES = 5
"""NeMo Gym wants exactly this many example rows."""


def lines(tasks: Iterable[TaskRow]) -> Iterator[bytes]:
    """One row per task; what a task leaves open is for the agent's settings to say."""
    for task in tasks:
        request = task.request()
        fields = {"task_id", "instruction", "runtime", "evaluator", "metadata"}
        yield orjson.dumps(row(request, fields), option=orjson.OPT_APPEND_NEWLINE)


def examples() -> list[TaskRow]:
    """Five problems of the bundled set `touch`: each another sentence, about every file in turn."""
    train = load_task_set("touch").train
    step = len({task.evaluator.config["command"] for task in train}) + 1
    return list(train[: EXAMPLES * step : step])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m nemo_gym_polar.environment.dataset")
    parser.add_argument("tasks", help="a bundled task set, or a JSONL file")
    parser.add_argument("--split", choices=["train", "heldout"], default="train", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of a bundled task set (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        tasks = load_task_set(options.tasks, seed=options.seed)
    except TaskSetError as error:
        print(f"dataset: {error}", file=sys.stderr)
        return 1
    sys.stdout.buffer.writelines(lines(getattr(tasks, options.split)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
