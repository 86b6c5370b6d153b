# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A set of problems, split into those to train on and those held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nemo_gym_polar.tasks.row import TaskRow


class TaskSetError(ValueError):
    """A task set that cannot be used; the message names the row or field and the remedy."""


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Problems to train on, and problems that are only measured. No id and no instruction is in both."""

    name: str
    train: tuple[TaskRow, ...]
    heldout: tuple[TaskRow, ...]

    def __post_init__(self) -> None:
        _refuse_repeats(self.name, "task_id", (row.task_id for row in (*self.train, *self.heldout)))
        leaked = {row.instruction for row in self.train} & {row.instruction for row in self.heldout}
        if leaked:
            raise TaskSetError(
                f"task set {self.name}: instruction {min(leaked)!r} is in both splits;"
                " a held-out problem must not be trained on"
            )

    @classmethod
    def of(cls, name: str, rows: Iterable[TaskRow]) -> TaskSet:
        """Sort `rows` by their split."""
        kept = tuple(rows)
        train = tuple(row for row in kept if row.split == "train")
        return cls(name, train, tuple(row for row in kept if row.split == "heldout"))


def _refuse_repeats(name: str, field: str, values: Iterable[str]) -> None:
    value, count = Counter(values).most_common(1)[0] if (values := list(values)) else ("", 0)
    if count > 1:
        raise TaskSetError(f"task set {name}: {field} {value!r} is given {count} times; make it unique")
