# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PTH123, PTH208 (importing pathlib would double the start-up time)
"""Finding, counting and ending every process below the supervisor, whatever it did to hide."""

import ctypes
import os
import signal
import time

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 5.0  # seconds until a killed process must be gone


def become(uid: int, gid: int, own: list[str]) -> None:
    """Give up root for good, taking the writable places along."""
    for path in own:
        os.chown(path, uid, gid)
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def protect() -> None:
    """Let no process of the same user trace this one or read its memory."""
    prctl(PR_SET_DUMPABLE, 0)


def prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option})")


class Namespace:
    """The supervisor is PID 1: the kernel knows all its processes, and kills them at once when it ends."""

    def __init__(self) -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # again: giving up root made the kernel forget bwrap's

    def count(self) -> int:
        return sum(name.isdigit() for name in os.listdir("/proc")) - 1

    def kill(self) -> None:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return


class Subtree:
    """Without a namespace: orphans come back to the supervisor, so a walk from it finds daemons too."""

    def __init__(self) -> None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def count(self) -> int:
        return len(descendants(os.getpid()))

    def kill(self) -> None:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := parent_of(name)) is not None:
            children.setdefault(parent, []).append(int(name))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def parent_of(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def clear(processes: Namespace | Subtree) -> bool:
    """Kill and reap until nothing is left; False if something refused to die in time."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        processes.kill()
        if not reap_all():
            return True
        time.sleep(0.001)
    return False


def reap_all() -> bool:
    """Collect the dead; True while children are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
