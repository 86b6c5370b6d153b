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
    return subprocess.run(command, capture_output=True, text=True, timeout=280)


def measured(script: str, *options: str) -> Any:
    done = run(script, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_side_by_side() -> None:
    options = ["--rounds", "2", "--scale", "0.01", "--turns", "2"]
    only = ["--only", "polar", "polar-chat", "polar-tmpfs", "proxy"]
    command = [sys.executable, str(BENCHMARKS / "side_by_side.py"), "--json", *only, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            found = json.loads(process.communicate(timeout=280)[0])
        finally:
            process.terminate()
    assert process.returncode == 0
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
    assert list(Path("/dev/shm").glob(f"polar-bench-{process.pid}-*")) == []


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
        pytest.param("report.py", ["--measure", "x"], "no such measurement: x; there are calls, rollouts", id="name"),
        pytest.param("report.py", ["--measure", "--small"], "--small needs --into DIR", id="small"),
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


def test_a_trial_of_the_report_leaves_the_page_as_it_is(tmp_path: Path) -> None:
    before = documents()
    done = run("report.py", "--measure", "forest", "control_plane", "--small", "--into", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "forest.json", "control_plane.json", "performance.md", "growing.svg"
    }  # fmt: skip
    assert "(6 sessions, 8 nodes" in (tmp_path / "performance.md").read_text()
    assert documents() == before


def test_a_measurement_that_takes_too_long_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    options = ["--small", "--into", str(tmp_path), "--minutes", "0.0001"]
    done = run("report.py", "--measure", "forest", "nodes", *options)
    assert done.returncode == 1
    last = "benchmarks: forest took more than 0.0001 minutes; nodes took more than 0.0001 minutes"
    assert done.stderr.splitlines()[-1] == last
    assert {path.name for path in tmp_path.iterdir()} == {"performance.md", "growing.svg"}


def documents() -> dict[Path, bytes]:
    docs = BENCHMARKS.parent / "docs"
    return {path: path.read_bytes() for path in [docs / "performance.md", *(docs / "performance").iterdir()]}
