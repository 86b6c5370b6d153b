# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Each benchmark's smallest run works, and says what it promises: ours and the floors, since the peers are heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / script), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def measured(script: str, *options: str) -> Any:
    done = run(script, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def journals_in_memory() -> set[Path]:
    return set(Path("/dev/shm").glob("polar-bench-*"))


def test_side_by_side() -> None:
    options, before = ["--rounds", "2", "--scale", "0.01", "--turns", "2"], journals_in_memory()
    found = measured("side_by_side.py", "--only", "polar", "polar-chat", "polar-tmpfs", "proxy", *options)
    names = {"direct", "polar", "polar-chat", "polar-tmpfs", "proxy"}
    for scenario in ("small", "large", "growing"):
        assert set(found[scenario]) == names
        assert all(len(rounds) == 2 for rounds in found[scenario].values())
        assert all(numbers["cpu_ms"] > 0 for rounds in found[scenario].values() for numbers in rounds)
    assert set(found["latency"]) == names
    assert all(value["p99_ms"] >= value["p50_ms"] > 0 for value in found["latency"].values())
    assert len(found["linear"]["polar"]["cpu_ms_by_tenth"]) == 10
    durable = found["growing"]["polar"][0]["disk_bytes_per_token"]
    assert 1 < durable < found["growing"]["proxy"][0]["disk_bytes_per_token"]
    assert len(found["loads"]) == 2
    assert found["machine"]["cores"] >= 1
    assert journals_in_memory() <= before


def test_finish() -> None:
    (session,) = measured("finish.py", "--turns", "3", "--only")["sessions"]
    assert session["polar"]["trajectories"] == 1
    assert session["polar"]["finish_ms"] > 0


def test_forest() -> None:
    (report,) = measured("forest.py", "--turns", "3")
    assert 0 < report["bytes_per_token"] < 12


@pytest.mark.parametrize(
    ("script", "options", "said"),
    [
        pytest.param("side_by_side.py", ["--only", "x"], "no such gateway: x; there are direct, polar", id="gateway"),
        pytest.param("side_by_side.py", ["--rounds", "0"], "--rounds and --turns must be at least 1", id="rounds"),
        pytest.param("peers.py", ["install", "x"], "no such peer: x; there are rllm", id="peer"),
        pytest.param(
            "report.py", ["--measure", "x"], "no such measurement: x; there are side_by_side", id="measurement"
        ),
    ],
)
def test_a_mistake_is_one_line(script: str, options: list[str], said: str) -> None:
    done = run(script, *options)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_peer_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLAR_CACHE_DIR", str(tmp_path))
    done = run("side_by_side.py", "--only", "rllm")
    assert done.stderr.strip() == "benchmarks: not installed: python benchmarks/peers.py install rllm"
