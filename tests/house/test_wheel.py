# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a stranger gets who installs the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def wheel(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    subprocess.run(build, cwd=repo, check=True, capture_output=True)
    return zipfile.ZipFile(next(target.glob("*.whl")))


def shipped(tracked: list[Path], root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in tracked if path.is_relative_to(root) and path.name != ".gitkeep"}


def test_every_module_is_in(wheel: zipfile.ZipFile, tracked: list[Path], repo: Path) -> None:
    files = {f"nemo_gym_polar/{name}" for name in shipped(tracked, repo / "nemo_gym_polar")}
    assert "nemo_gym_polar/py.typed" in files
    assert files <= set(wheel.namelist())


@pytest.mark.parametrize("folder", ["conf", "recipes"])
def test_configuration_is_in(wheel: zipfile.ZipFile, tracked: list[Path], repo: Path, folder: str) -> None:
    files = {f"nemo_gym_polar/{folder}/{name}" for name in shipped(tracked, repo / folder)}
    assert files
    assert files <= set(wheel.namelist())


def test_commands_are_declared(wheel: zipfile.ZipFile) -> None:
    entry = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    text = wheel.read(entry).decode()
    assert "polar = nemo_gym_polar.cli.polar:main" in text
    assert "nemo-rl = nemo_gym_polar.cli.nemo_rl:main" in text


def test_nothing_else_is_in(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert not tops & {"tests", "scripts", "benchmarks", "requirements", "conf", "recipes", "docs"}
