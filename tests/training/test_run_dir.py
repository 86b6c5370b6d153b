# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nemo_gym_polar.training.checkpoint import write_state
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.reports import Evaluation, StepReport, Summary
from nemo_gym_polar.training.run_dir import RunDir, locate
from nemo_gym_polar.training.run_settings import TrainSettings


def make_step(step: int) -> StepReport:
    empty: dict[str, Any] = {
        field.name: {} if "dict" in str(field.type) else 0 for field in dataclasses.fields(StepReport)
    }
    return StepReport(**empty | {"step": step, "reward": step / 10, "values": {"entropy": 1.0}})


def make_evaluation(when: str, step: int) -> Evaluation:
    return Evaluation(when, step, 0.5, 0.1, 4, 8, 1.0, {}, 0)  # type: ignore[arg-type]  # one of the two words


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_a_run_that_goes_on_forgets_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    run = RunDir(tmp_path, TrainSettings())
    run.evaluated(make_evaluation("before", 0))
    for step in (1, 2, 3):
        run.stepped(make_step(step))
    run.evaluated(make_evaluation("after", 3))
    run.finish(Summary(str(tmp_path), 0))
    again = RunDir(tmp_path, TrainSettings(), step=2)
    assert steps(tmp_path) == [0, 1, 2]
    again.stepped(make_step(3))
    assert steps(tmp_path) == [0, 1, 2, 3]
    again.finish(Summary(str(tmp_path), 0))
    assert (tmp_path / "curve.png").stat().st_size > 5000


def test_the_configuration_can_be_read_back(tmp_path: Path) -> None:
    settings = TrainSettings.model_validate({"harness": {"settings": {"command": "echo ${X:-1}"}}})
    RunDir(tmp_path, settings).finish(Summary(str(tmp_path), 0))
    assert TrainSettings.model_validate(yaml.safe_load((tmp_path / "config.yaml").read_text())) == settings


def test_a_run_without_a_single_step_has_its_files(tmp_path: Path) -> None:
    RunDir(tmp_path, TrainSettings()).finish(Summary(str(tmp_path), 3, status="interrupted"))
    assert json.loads((tmp_path / "summary.json").read_text())["status"] == "interrupted"
    assert (tmp_path / "curve.png").exists()


def test_where_a_run_lies(tmp_path: Path) -> None:
    settings = TrainSettings(directory=tmp_path, name="one")
    assert locate(settings) == (tmp_path / "one", None)
    last = tmp_path / "one" / "checkpoints" / "step-3"
    last.mkdir(parents=True)
    write_state(last, {})
    for resume in (True, tmp_path / "one", last):
        assert locate(settings.model_copy(update={"resume": resume})) == (tmp_path / "one", last)
    (tmp_path / "one" / "config.yaml").write_text("")
    with pytest.raises(TrainingError, match=r"name=one: .* holds a run already"):
        locate(settings)


def test_a_run_without_a_name_gets_one(tmp_path: Path) -> None:
    path, _ = locate(TrainSettings.model_validate({"directory": tmp_path, "env": {"tasks": "a/b.jsonl"}, "seed": 4}))
    assert path.parent == tmp_path
    assert path.name.startswith("b-4-")
