# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Machines with addresses, names, processes and disks of their own, on this one: Linux namespaces around a switch.

Nothing has a name outside and nothing is left: a machine is what its first process holds, and that one ends when its
stdin closes, however the test ended. Its processes, its network and its mounts end with it. It takes root, `ip`,
`unshare` and `nsenter`; where these can't do it, `Network` raises and says what is missing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE

import psutil

SUBNET = "10.77.0"  # nobody but the machines sees it
SEPARATE = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
FIRST = ("env", "--ignore-signal=CHLD", "cat")  # takes in orphans as a machine's first process does
NEED = "machines with addresses of their own need root, and `ip`, `unshare` and `nsenter` (iproute2, util-linux)"


@dataclass(slots=True)
class Machine:
    """`first` is its first process, as it is numbered outside. `disk` is what the machine sees at the shared place."""

    name: str
    address: str
    first: int
    disk: Path

    def inside(self, *command: str) -> list[str]:
        """That command, to be run on the machine."""
        spaces = ("--net", "--uts", "--mount", "--pid", f"--wdns={Path.cwd()}")
        return ["nsenter", f"--target={self.first}", *spaces, "--", *command]

    def run(self, *command: str) -> str:
        return told(self.inside(*command))

    @property
    def temporary(self) -> Path:
        """On its disk, by its outer name: sockets need a short one."""
        return self.disk / "ray"

    def processes(self) -> list[psutil.Process]:
        """All but its first one."""
        own = space(self.first)
        return [one for one in psutil.process_iter() if one.pid != self.first and space(one.pid) == own != ""]

    def named(self, marks: Iterable[str]) -> list[str]:
        """Its processes that have one of the marks in their command line or environment."""
        texts = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                texts.append(f"{process.pid} {' '.join(process.cmdline())} {process.environ()}")
        return [text for text in texts if any(mark in text for mark in marks)]

    def end_all(self) -> None:
        """SIGKILL for every process but its first one."""
        for process in (processes := self.processes()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=30)


@dataclass(slots=True)
class Network:
    """All machines see their own disk at `place`, an existing directory; the disks are under `disks`."""

    place: Path
    disks: Path
    stack: ExitStack = field(default_factory=ExitStack)
    switch: int = 0
    machines: list[Machine] = field(default_factory=list)

    def __enter__(self) -> Network:
        with ExitStack() as stack:
            self.switch = stack.enter_context(separate())
            self._ip("link", "add", "switch", "type", "bridge")
            self._ip("link", "set", "switch", "up")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def add(self, name: str) -> Machine:
        first = self.stack.enter_context(separate())
        number = len(self.machines) + 1
        machine = Machine(name, f"{SUBNET}.{number}", first, self.disks / name)
        machine.disk.mkdir(parents=True)
        self._ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(first))
        self._ip("link", "set", name, "master", "switch", "up")
        for words in (("address", "add", f"{machine.address}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            machine.run("ip", *words)
        machine.run("ip", "link", "set", "lo", "up")
        machine.run("hostname", name)
        machine.run("mount", "--bind", str(machine.disk), str(self.place))
        self.machines.append(machine)
        return machine

    def tell(self) -> None:
        """Every machine the names of all: there is nobody else to ask."""
        names = "".join(f"{machine.address} {machine.name}\n" for machine in self.machines)
        (self.disks / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        for machine in self.machines:
            machine.run("mount", "--bind", str(self.disks / "hosts"), "/etc/hosts")

    def cut(self, machine: Machine) -> None:
        self._ip("link", "set", machine.name, "down")

    def heal(self, machine: Machine) -> None:
        self._ip("link", "set", machine.name, "up")

    def _ip(self, *words: str) -> None:
        told(["nsenter", f"--target={self.switch}", "--net", "--", "ip", *words])


@contextlib.contextmanager
def separate() -> Iterator[int]:
    """The first process in namespaces of its own."""
    try:
        holder = subprocess.Popen([*SEPARATE, *FIRST], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except FileNotFoundError as error:
        raise AssertionError(f"{NEED}: {error}") from None
    with holder:
        try:
            yield first_process(holder)
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(holder.pid).children():
                    child.kill()  # it is gone when all are that were with it
            holder.wait(60)


def first_process(holder: subprocess.Popen[bytes]) -> int:
    assert holder.stdin and holder.stdout and holder.stderr
    with contextlib.suppress(BrokenPipeError):
        os.write(holder.stdin.fileno(), b"there\n")
    if holder.stdout.readline() != b"there\n":
        raise AssertionError(f"{NEED}: {holder.stderr.read().decode().strip()}")
    (first,) = psutil.Process(holder.pid).children()
    return first.pid


def told(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as error:
        raise AssertionError(f"{NEED}: {error}") from None
    assert not done.returncode, f"{NEED}: {' '.join(command)}: {done.stderr.strip()}"
    return done.stdout


def space(pid: int) -> str:
    """Which processes a process belongs to; empty for one that is gone."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""
