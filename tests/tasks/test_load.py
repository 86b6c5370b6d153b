# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.task import RuntimeSpec
from nemo_gym_polar.tasks import TaskSet, TaskSetError, load_task_set
from nemo_gym_polar.tasks.bundled import BUNDLED
from nemo_gym_polar.tasks.jsonl import read_rows, write_rows

ROW = {"task_id": "a", "instruction": "Do it.", "evaluator": {"config": {"command": "true"}}}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_jsonl_gives_back_what_was_written(tmp_path: Path, name: str) -> None:
    tasks = load_task_set(name)
    path = tmp_path / f"{name}.jsonl"
    write_rows((*tasks.train, *tasks.heldout), path)
    assert load_task_set(path) == tasks


def test_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", ROW)
    path.write_text("\n" + path.read_text() + "  \n")
    assert [row.task_id for row in read_rows(path)] == ["a"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"instruction": ""}, "instruction"),
        ({"reward": 1}, "reward: Extra inputs are not permitted"),
        ({"split": "test"}, "split"),
        ({"files": {"/etc/passwd": ""}}, "does not lie in the workspace"),
        ({"files": {"../x": ""}}, "does not lie in the workspace"),
        ({"evaluator": {"stratgy": "command"}}, "evaluator.stratgy"),
    ],
)
def test_a_bad_field_is_named_with_its_line(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = write(tmp_path / "t.jsonl", ROW, ROW | {"task_id": "b"} | change)
    with pytest.raises(TaskSetError, match=r"t\.jsonl:2: ") as error:
        load_task_set(path)
    assert said in str(error.value)


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("{not json}\n")
    with pytest.raises(TaskSetError, match=r"t\.jsonl:1: the line: Invalid JSON"):
        load_task_set(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskSetError, match="has no rows"):
        load_task_set(write(tmp_path / "t.jsonl"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskSetError, match="cannot be read"):
        load_task_set(tmp_path / "none.jsonl")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(TaskSetError, match="remove, touch"):
        load_task_set("tuch")


def test_a_repeated_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskSetError, match="task_id 'a' is given 2 times"):
        load_task_set(write(tmp_path / "t.jsonl", ROW, ROW))


def test_an_instruction_in_both_splits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskSetError, match="must not be trained on"):
        load_task_set(write(tmp_path / "t.jsonl", ROW, ROW | {"task_id": "b", "split": "heldout"}))


def test_a_row_becomes_a_request(tmp_path: Path) -> None:
    row = TaskSet.of("t", read_rows(write(tmp_path / "t.jsonl", ROW | {"files": {"a": "1"}}))).train[0]
    request = row.request(num_samples=4, timeout_seconds=9, runtime=RuntimeSpec(backend="local", files={"b": "2"}))
    assert (request.task_id, request.instruction, request.num_samples) == ("a", "Do it.", 4)
    assert request.runtime == RuntimeSpec(backend="local", files={"b": "2", "a": "1"})
    assert request.evaluator == row.evaluator
    assert request.timeout_seconds == 9
