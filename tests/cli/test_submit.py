# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a task's file may hold: whatever JSON can say."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.cli.submit import read_task


def task_file(directory: Path, text: str) -> str:
    path = directory / "task.yaml"
    path.write_text(text)
    return str(path)


def test_json_yaml_and_dates(tmp_path: Path) -> None:
    plain = {"task_id": "a", "num_samples": 2, "metadata": {"on": True, "list": [1, 0.5, None]}}
    assert read_task(task_file(tmp_path, orjson.dumps(plain).decode())) == plain
    dated = read_task(task_file(tmp_path, "{task_id: 2026-11-22, metadata: {at: 2026-11-22 10:00:00}}"))
    assert orjson.loads(orjson.dumps(dated))["task_id"] == "2026-11-22"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no task"),
        ("[1]", "is no task"),
        ("{a: [", "is neither JSON nor YAML"),
        ("task_id: 2026-13-45", "is neither JSON nor YAML"),
        ("&a [*a]", "is neither JSON nor YAML"),
        ("a: &a {b: *a}", "is neither JSON nor YAML"),
        ("{1: 2}", "the task has the key 1, which is no text"),
        ("{a: {b: {2: 3}}}", "a.b has the key 2, which is no text"),
        ("{a: [0, .nan]}", "a.1=nan is no number that JSON has"),
        ("{a: -.inf}", "a=-inf is no number that JSON has"),
        ("{a: {b: !!binary aGk=}}", "a.b=b'hi' is a bytes"),
        ("{a: !!set {x}}", "a={'x'} is a set"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        read_task(task_file(tmp_path, text))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
