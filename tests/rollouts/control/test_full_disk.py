# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""On a real file system that is full: SQLite and the files of results share it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SIZE = 1_500_000  # bytes


def test_a_full_disk_loses_nothing_and_is_said(tmp_path: Path) -> None:
    sandbox = ["bwrap", "--dev-bind", "/", "/", "--size", str(SIZE), "--tmpfs", str(tmp_path), "--"]
    command = [*sandbox, sys.executable, "-m", "tests.support.full_disk", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    trouble, refused, acknowledged, stored = done.stdout.splitlines()
    assert "No space left on device" in trouble
    assert refused.startswith("submit refused after ")
    assert acknowledged == "acknowledged: 0 unstored: 3"
    assert stored == "stored: 3 None"
