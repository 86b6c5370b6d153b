# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nemo_gym_polar.environment.venvs import SERVERS, link_venvs, main


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    bin_ = tmp_path / "venv" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "python").symlink_to(sys.executable)
    (bin_ / "activate").touch()
    return bin_.parent


def test_every_server_gets_the_environment(tmp_path: Path, venv: Path) -> None:
    root = tmp_path / "gym"
    settings = link_venvs(root, [*SERVERS, "responses_api_models/openai_model"], venv=venv)
    assert settings == ["+skip_venv_if_present=true", f"+uv_venv_dir={root}"]
    for server in (*SERVERS, "responses_api_models/openai_model"):
        assert (root / server / ".venv" / "bin" / "python").exists()


def test_linking_again_follows_the_new_environment(tmp_path: Path, venv: Path) -> None:
    link_venvs(tmp_path / "gym", venv=venv)
    moved = venv.rename(tmp_path / "moved")
    link_venvs(tmp_path / "gym", venv=moved)
    assert (tmp_path / "gym" / SERVERS[0] / ".venv").readlink() == moved


def test_a_real_environment_is_left_alone(tmp_path: Path, venv: Path) -> None:
    (tmp_path / "gym" / SERVERS[0] / ".venv").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="is a real directory: remove it"):
        link_venvs(tmp_path / "gym", venv=venv)


def test_an_interpreter_outside_an_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no bin/python: run this with the Python of a virtual environment"):
        link_venvs(tmp_path / "gym", venv=tmp_path)


def test_the_command_prints_the_settings(tmp_path: Path, venv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    (tmp_path / "file").touch()
    assert main([str(tmp_path / "file")]) == 1
    assert "usage" in (errors := capsys.readouterr().err)
    assert "venvs: " in errors
