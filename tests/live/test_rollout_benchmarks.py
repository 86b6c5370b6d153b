# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The smallest run of each benchmark of rollouts works, and its figures belong together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def measured(script: str, *options: str) -> Any:
    command = [sys.executable, str(BENCHMARKS / script), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_builders_train_the_same_tokens_at_another_price() -> None:
    found = measured("builder_ablation.py", "--groups", "1", "--samples", "2", "--turns", "2", "3")
    assert [workload["turns"] for workload in found["workloads"]] == [2, 3]
    for workload in found["workloads"]:
        each, merged = workload["builders"]
        assert each["trained_tokens"] == merged["trained_tokens"] > 0
        assert each["traces"] == workload["calls"] > merged["traces"]
        assert each["input_tokens"] > merged["input_tokens"]


def test_stages_do_the_same_work_however_they_are_pooled() -> None:
    found = measured("rollout_stages.py", "--sessions", "4", "--places", "2", "--scale", "0.01")["plans"]
    assert [row["plan"] for row in found] == ["sequential", "pool", "stages", "ready", "prewarm"]
    assert len({row["calls"] for row in found[1:]}) == 1
    assert all(0 < row["busy"] <= 1 and 0 < row["model_busy"] <= 1 for row in found)


def test_a_model_of_more_nodes_is_bound_by_its_control_plane() -> None:
    one, ten = measured("stage_model.py", "--nodes", "1", "10", "--seconds", "200", "--control-ms", "1000")["nodes"]
    assert ten["control_busy"] == pytest.approx(1.0)
    assert one["control_busy"] < 0.5
    assert one["sessions_per_second"] < ten["sessions_per_second"] <= 1.1
    assert one["seconds"] > ten["seconds"]


def test_the_control_plane_ends_every_session() -> None:
    found = measured("control_plane.py", "--nodes", "2", "--tasks", "2", "--samples", "3")
    assert found["sessions"] == 6
    assert found["cpu_ms_per_session"] > 0
    assert found["machine"]["seconds"] > 0
