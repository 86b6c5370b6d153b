# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a measurement was made on, of what, and beside how much other work."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import ROOT


@contextmanager
def measured() -> Iterator[dict[str, Any]]:
    """The machine; when the block has ended, also its load then and the seconds that the block took."""
    here, began = machine(), time.monotonic()
    yield here
    here |= {"load_after": os.getloadavg(), "seconds": time.monotonic() - began}


def machine() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "cpu": next((line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), ""),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
        "load_before": os.getloadavg(),
    }


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
