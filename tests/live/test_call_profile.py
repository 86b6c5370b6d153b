# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The profile of a call runs, and books time to the parts that a call goes through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "call_profile.py"


def test_parts_and_lines_are_listed() -> None:
    command = [sys.executable, str(SCRIPT), "--json", "--scenario", "growing", "--calls", "100", "--lines", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    found = json.loads(done.stdout)
    assert {"dialect", "forest", "tokenizer", "HTTP server (uvicorn)"} <= set(found["parts"])
    assert all(ms >= 0 for ms in found["parts"].values())
    assert len(found["lines"]) == 5
