# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Whole training runs on a small random policy: its own engine process, a harness in shell, a coin for a reward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.training.progress import PlainProgress
from nemo_gym_polar.training.reports import Evaluation, StepReport, Summary
from nemo_gym_polar.training.run_settings import TrainSettings
from tests.support.policies import saved, small_tokenizer, wild_policy
from tests.support.rollouts import ASK_ONCE

# The answer's id differs each time, so about half of the sessions are rewarded, whatever the policy says.
COIN = "test $(( $(cksum < answer.json | cut -d ' ' -f 1) % 2 )) = 0"


def make_policy(directory: Path) -> Path:
    tokenizer = small_tokenizer()
    return saved(wild_policy(tokenizer, 0), tokenizer, directory)


def make_tasks(path: Path, *, train: int = 4, heldout: int = 2) -> Path:
    rows = [
        {
            "task_id": f"{split}-{number}",
            "instruction": f"Say {split} {number}.",
            "evaluator": {"strategy": "command", "config": {"command": COIN}},
            "split": split,
        }
        for split, count in (("train", train), ("heldout", heldout))
        for number in range(count)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def make_settings(policy: Path, directory: Path, **changed: Any) -> TrainSettings:
    """`changed` are dotted keys with `__` for the dot."""
    tasks = directory / "tasks.jsonl"
    if not tasks.exists():
        make_tasks(tasks)
    values: dict[str, Any] = {
        "name": "run",
        "directory": directory,
        "env": {"tasks": str(tasks), "groups": 2, "samples": 4, "heldout_samples": 2, "max_turns": 2},
        "harness": {"harness": "shell", "settings": {"command": ASK_ONCE}},
        "runtime": {"backend": "local"},
        "policy": {"model": policy},
        "engine": {"sampling": {"max_tokens": 8}},
        "trainer": {"steps": 2, "device": "cpu", "checkpoint_every": 1},
    }
    for key, value in changed.items():
        group, _, name = key.partition("__")
        if name:
            values[group] = values.get(group, {}) | {name: value}
        else:
            values[group] = value
    return TrainSettings.model_validate(values)


@dataclass(slots=True)
class Heard(PlainProgress):
    """Keeps what it is told; `on_sessions` is called with the stages while sessions run."""

    said: list[str] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    steps: list[StepReport] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    batches: list[tuple[int, int]] = field(default_factory=list)
    on_sessions: Callable[[Mapping[Stage, int]], None] | None = None

    def say(self, line: str) -> None:
        self.said.append(line)

    def sessions(self, stages: Mapping[Stage, int], done: int, total: int) -> None:
        self.batches.append((done, total))
        if self.on_sessions:
            self.on_sessions(stages)

    def evaluated(self, evaluation: Evaluation) -> None:
        self.evaluations.append(evaluation)

    def stepped(self, step: StepReport, steps: int) -> None:
        self.steps.append(step)

    def finished(self, summary: Summary) -> None:
        self.summaries.append(summary)
