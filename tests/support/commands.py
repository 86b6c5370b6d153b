# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The commands as a person runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULES = {"polar": "nemo_gym_polar.cli.polar", "nemo-rl": "nemo_gym_polar.cli.nemo_rl"}


def command_line(program: str, *arguments: str) -> list[str]:
    code = f"import sys; from {MODULES[program]} import main; sys.argv[0] = {program!r}; main()"
    return [sys.executable, "-c", code, *arguments]


def run_command(directory: Path, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs to its end in `directory`, with no terminal and a wide page."""
    return subprocess.run(
        command_line(program, *arguments),
        cwd=directory,
        env={**os.environ, "COLUMNS": "200", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
