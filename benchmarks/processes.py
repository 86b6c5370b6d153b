# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Servers as child processes, and the CPU time that they use, to the nanosecond."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Child:
    """A server that has said its first line."""

    process: subprocess.Popen[str]
    first_line: str

    def cpu(self) -> float:
        return cpu_of(self.process.pid)

    def resident(self) -> int:
        return resident_of(self.process.pid)


def cpu_of(pid: int) -> float:
    """Seconds on a CPU so far, all threads together. Linux only: /proc/PID/task/*/schedstat."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def resident_of(pid: int) -> int:
    """Bytes of memory in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def tree(pid: int) -> list[int]:
    """A process and all that it started, and they."""
    children = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
    return [pid, *(one for file in children for child in file.read_text().split() for one in tree(int(child)))]


@contextlib.contextmanager
def child(*argv: str) -> Iterator[Child]:
    """`python argv…`, from the repository's root, ended with the block."""
    process = subprocess.Popen([sys.executable, *argv], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    try:
        yield Child(process, process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
