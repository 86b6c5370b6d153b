# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.cli.polar import app


def polar(directory: Path, *options: str) -> str:
    given = ["certificate", "--tokenizer", str(directory), *options]
    ended = CliRunner().invoke(app, given, catch_exceptions=False, standalone_mode=False)
    if isinstance(ended.exception, Exception):
        raise ended.exception
    return ended.stdout


def test_a_table_for_people(model_directory: Path) -> None:
    said = polar(model_directory, "--renderer", "qwen3.5")
    (fork,) = [line for line in said.splitlines() if line.startswith("assistant with thinking→user")]
    assert "forks" in fork
    assert "'<think>' → 'H'" in fork
    assert "history strip" in said


def test_json_for_programs(model_directory: Path) -> None:
    said = polar(model_directory, "--renderer", "qwen3.5", "--history", "keep", "--json")
    found = json.loads(said)
    assert found["history"] == "keep"
    assert all(step["verdict"] != "unsupported" for step in found["steps"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--renderer", "qwen9"), "renderer: .*qwen9.*default"),
        (("--renderer", "default", "--history", "keep"), "history=keep"),
        (("--renderer", "qwen3.5", "--renderer-options", "[1]"), "--renderer-options"),
        (("--renderer", "qwen3.5", "--renderer-options", "{"), "is not JSON"),
    ],
)
def test_what_is_wrong_is_named(model_directory: Path, options: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        polar(model_directory, *options)
