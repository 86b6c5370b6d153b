# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`nemo-rl train` up to the run itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from nemo_gym_polar.training.run_settings import TrainSettings
from tests.support.commands import run_command


def test_help_lists_the_groups(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "nemo-rl", "train", "--help")
    assert ended.returncode == 0
    for choice in ("env=polar", "runtime=bubblewrap | local", "opencode | pi | qwen_code", "trainer=grpo"):
        assert choice in ended.stdout


def test_cfg_prints_what_a_run_would_use(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "nemo-rl", "train", "env=polar", "trainer.steps=3", "--cfg", "job")
    assert ended.returncode == 0, ended.stderr
    assert TrainSettings.model_validate(yaml.safe_load(ended.stdout)).trainer.steps == 3


def test_dry_run_does_nothing(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "nemo-rl", "train", "env=polar", "--dry-run")
    assert ended.returncode == 0, ended.stderr
    assert "laptop.yaml holds" in ended.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_printed_configuration_is_a_recipe(tmp_path: Path) -> None:
    printed = run_command(tmp_path, "nemo-rl", "train", "env=polar", "seed=5", "--cfg", "job").stdout
    (tmp_path / "again.yaml").write_text(printed)
    again = run_command(tmp_path, "nemo-rl", "train", "--config", "again.yaml", "--cfg", "job")
    assert again.stdout == printed, again.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["env=math"], 2, "env=math: there is no such env; choose one of: polar"),
        (["trainer.stepz=1"], 2, "did you mean trainer.steps (conf/trainer/grpo.yaml)?"),
        (["--config", "desktop"], 1, "no recipe 'desktop'"),
        (["--cfg", "hydra"], 2, "--cfg"),
        (["env.tasks=nothing"], 1, "env.tasks"),
        (["env.tasks=nothing", "--dry-run"], 1, "env.tasks"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    ended = run_command(tmp_path, "nemo-rl", "train", *arguments)
    assert ended.returncode == code
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert words in ended.stderr
