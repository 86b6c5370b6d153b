# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar doctor` looks at the real machine."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest

from nemo_gym_polar.cli import doctor
from tests.support.commands import run_command


def test_names_every_need(tmp_path: Path) -> None:
    findings = {finding.name: finding for finding in doctor.examine(tmp_path, 0)}
    assert set(findings) == {"python", "node", "pi", "bubblewrap", "torch", "threads", "memory", "disk", "port"}
    assert findings["python"].ok
    assert all(finding.remedy for finding in findings.values() if not finding.ok)


def test_a_taken_port_is_found(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        finding = doctor.gateway_port(port)
        ended = run_command(tmp_path, "polar", "doctor", "--port", str(port))
    assert not finding.ok
    assert str(port) in finding.detail
    assert ended.returncode == 1
    assert "FAIL  port" in ended.stdout


def test_a_harness_that_is_not_installed_is_found(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "polar", "doctor", "--json", POLAR_CACHE_DIR=str(tmp_path / "cache"))
    assert ended.returncode == 1
    (finding,) = (item for item in json.loads(ended.stdout) if item["name"] == "pi")
    assert not finding["ok"]
    assert finding["remedy"] == "polar harness install pi"


def test_bubblewrap_that_is_missing_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    finding = doctor.sandbox()
    assert (finding.ok, finding.required) == (False, False)
    assert "runtime=local" in finding.remedy


def test_a_directory_that_is_not_there_yet_is_judged_by_its_parent(tmp_path: Path) -> None:
    finding = doctor.disk(tmp_path / "runs" / "new")
    assert str(tmp_path) in finding.detail


def test_spinning_threads_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert not doctor.threads().ok
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert doctor.threads().ok


def test_harness_list(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "polar", "harness", "list", POLAR_CACHE_DIR=str(tmp_path / "cache"))
    assert re.search(r"^pi +[0-9.]+ +not installed ", ended.stdout, re.MULTILINE)


def test_unknown_harness_is_one_line(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "polar", "harness", "install", "pie")
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert re.search(r"'pie' is unknown: choose one of .*\bpi, ", ended.stderr)
