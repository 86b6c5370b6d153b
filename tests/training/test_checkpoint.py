# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nemo_gym_polar.training import checkpoint
from nemo_gym_polar.training.errors import TrainingError


def write(directory: Path, value: int) -> None:
    with checkpoint.writing(directory) as part:
        checkpoint.write_state(part, {"value": value})


def test_it_appears_whole_and_replaces_the_one_before(tmp_path: Path) -> None:
    write(tmp_path / "step-1", 1)
    write(tmp_path / "step-1", 2)
    assert checkpoint.read_state(tmp_path / "step-1") == {"value": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def test_one_that_fails_half_way_leaves_the_one_before(tmp_path: Path) -> None:
    write(tmp_path / "step-1", 1)
    with pytest.raises(OSError, match="full"), checkpoint.writing(tmp_path / "step-1") as part:
        (part / "half").write_text("x")
        raise OSError("the disk is full")
    assert checkpoint.read_state(tmp_path / "step-1") == {"value": 1}
    assert checkpoint.latest(tmp_path) == tmp_path / "step-1"
    write(tmp_path / "step-1", 3)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def test_the_latest_is_found_from_any_directory_of_a_run(tmp_path: Path) -> None:
    for step in (2, 10, 9):
        write(tmp_path / "checkpoints" / f"step-{step}", step)
    (tmp_path / "checkpoints" / "step-11").mkdir()
    last = tmp_path / "checkpoints" / "step-10"
    assert [checkpoint.latest(place) for place in (tmp_path, tmp_path / "checkpoints", last)] == [last] * 3


def test_only_the_last_few_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 10):
        write(tmp_path / f"step-{step}", step)
    checkpoint.prune(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-10", "step-2"]


def test_nothing_to_resume_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="there is no checkpoint"):
        checkpoint.latest(tmp_path)


def test_damage_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    (tmp_path / "optimizer.pt").write_bytes(b"")
    with pytest.raises(TrainingError, match=r"state\.json can't be read"):
        checkpoint.read_state(tmp_path)
    with pytest.raises(TrainingError, match=r"optimizer\.pt can't be read"):
        checkpoint.read_optimizer(tmp_path, torch.device("cpu"))
