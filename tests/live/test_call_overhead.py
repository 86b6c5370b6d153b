# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of a call's cost runs and says what it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "call_overhead.py"


@pytest.mark.parametrize("flags", [[], ["--stream"]])
def test_every_scenario_is_measured(flags: list[str]) -> None:
    command = [sys.executable, str(SCRIPT), "--json", "--calls", "2", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    found = json.loads(done.stdout)
    assert set(found) == {"small_first", "small", "large", "growing"}
    targets = {"gateway"} if flags else {"engine", "proxy", "gateway"}
    for rows in found.values():
        assert set(rows) == targets
        for row in rows.values():
            assert row["cpu_ms"] > 0
            assert row["latency_ms_p99"] >= row["latency_ms_p50"] > 0
