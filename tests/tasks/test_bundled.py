# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from nemo_gym_polar.tasks import TaskRow, load_task_set
from nemo_gym_polar.tasks.bundled import BUNDLED
from nemo_gym_polar.tasks.wording import FILE_NAMES


def passes(row: TaskRow, workspace: Path) -> bool:
    command = row.evaluator.config["command"]
    return subprocess.run(["bash", "-c", command], cwd=workspace, check=False).returncode == 0


def workspace(row: TaskRow, path: Path) -> Path:
    path.mkdir(parents=True)
    for name, text in row.files.items():
        (path / name).write_text(text)
    return path


def named(row: TaskRow) -> str:
    return next(name for name in FILE_NAMES if name in row.instruction)


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_the_seed_alone_decides_the_rows(name: str) -> None:
    assert load_task_set(name, seed=3) == load_task_set(name, seed=3)
    assert load_task_set(name, seed=3) != load_task_set(name, seed=4)


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_every_file_is_asked_for_equally_often(name: str) -> None:
    tasks = load_task_set(name)
    for rows in (tasks.train, tasks.heldout):
        assert set(Counter(named(row) for row in rows).values()) == {len(rows) // len(FILE_NAMES)}


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_a_held_out_sentence_is_trained_on_with_no_file(name: str) -> None:
    tasks = load_task_set(name)
    trained = {row.instruction.replace(named(row), "NAME") for row in tasks.train}
    held_out = {row.instruction.replace(named(row), "NAME") for row in tasks.heldout}
    assert not trained & held_out


def test_touch_wants_the_named_file(tmp_path: Path) -> None:
    row = load_task_set("touch").heldout[0]
    place = workspace(row, tmp_path / "w")
    assert not passes(row, place)
    (place / named(row)).touch()
    assert passes(row, place)


@pytest.mark.parametrize("other", ["other.txt", ".hidden"])
def test_touch_refuses_any_further_file(tmp_path: Path, other: str) -> None:
    row = load_task_set("touch").heldout[0]
    place = workspace(row, tmp_path / "w")
    for name in (named(row), other):
        (place / name).touch()
    assert not passes(row, place)


def test_touch_is_not_fooled_by_creating_every_file(tmp_path: Path) -> None:
    row = load_task_set("touch").train[0]
    place = workspace(row, tmp_path / "w")
    for name in FILE_NAMES:
        (place / name).touch()
    assert not passes(row, place)


def test_remove_wants_only_the_named_file_gone(tmp_path: Path) -> None:
    for number, row in enumerate(load_task_set("remove").heldout[: len(FILE_NAMES)]):
        place = workspace(row, tmp_path / str(number))
        assert not passes(row, place)
        (place / named(row)).unlink()
        assert passes(row, place)
        (place / next(name for name in FILE_NAMES if name != named(row))).unlink()
        assert not passes(row, place)
