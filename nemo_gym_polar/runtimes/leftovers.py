# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that lost their supervisor: without a namespace a command may kill it, and what it started goes to init."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def kill(directory: Path) -> None:
    """End every process of ours that works in the directory or was given it in its environment."""
    for pid in found(directory):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def found(directory: Path) -> list[int]:
    processes = (path for path in Path("/proc").iterdir() if path.name.isdigit() and path.name != str(os.getpid()))
    return [int(process.name) for process in processes if belongs(process, directory)]


def belongs(process: Path, directory: Path) -> bool:
    try:
        works_in = Path(os.readlink(process / "cwd"))  # noqa: PTH115 - of a directory that may be gone already
        return works_in.is_relative_to(directory) or bytes(directory) in (process / "environ").read_bytes()
    except OSError:  # it ended, or is somebody else's
        return False
