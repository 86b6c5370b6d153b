# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The task sets that come with the package.

Each is small enough for the embedded policy, and each is scored by the state of the workspace as a whole: doing
everything that any request could mean fails as surely as doing nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable

from nemo_gym_polar.rollouts.task import EvaluatorSpec
from nemo_gym_polar.tasks.row import Split, TaskRow
from nemo_gym_polar.tasks.wording import FILE_NAMES, Wording, split_patterns

TRAIN_PATTERNS = 32
HELDOUT_PATTERNS = 8

TOUCH = Wording(
    verbs=("create", "make", "add", "set up"),
    objects=("a file named", "an empty file called", "the file", "the new file"),
)
REMOVE = Wording(
    verbs=("delete", "remove", "erase", "drop"),
    objects=("the file named", "the old file called", "the file", "the unused file"),
)


def touch(seed: int) -> list[TaskRow]:
    """Create the one file that the request names, in an empty workspace."""
    return [
        TaskRow(task_id=task_id, instruction=instruction, evaluator=_holds_exactly([name]), split=split)
        for task_id, instruction, name, split in _requests("touch", TOUCH, seed)
    ]


def remove(seed: int) -> list[TaskRow]:
    """Delete the one file that the request names, and none of the others."""
    files = {name: f"This is {name}.\n" for name in FILE_NAMES}
    return [
        TaskRow(
            task_id=task_id,
            instruction=instruction,
            files=files,
            evaluator=_holds_exactly(other for other in FILE_NAMES if other != name),
            split=split,
        )
        for task_id, instruction, name, split in _requests("remove", REMOVE, seed)
    ]


BUNDLED: dict[str, Callable[[int], list[TaskRow]]] = {"touch": touch, "remove": remove}


def _requests(label: str, wording: Wording, seed: int) -> Iterable[tuple[str, str, str, Split]]:
    """Id, instruction, file name and split of every problem: each sentence once with each file."""
    train, heldout = split_patterns(wording, train=TRAIN_PATTERNS, heldout=HELDOUT_PATTERNS, seed=seed)
    splits: tuple[tuple[Split, list[str]], ...] = (("train", train), ("heldout", heldout))
    for split, patterns in splits:
        for number, pattern in enumerate(patterns):
            for name in FILE_NAMES:
                yield f"{label}-{split}-{number:02d}-{name}", pattern.format(name=name), name, split


def _holds_exactly(names: Iterable[str]) -> EvaluatorSpec:
    """The workspace holds these files and nothing else, hidden or not."""
    listing = "\n".join(sorted(names))
    return EvaluatorSpec(strategy="command", config={"command": f'test "$(LC_ALL=C ls -A)" = {shlex.quote(listing)}'})
