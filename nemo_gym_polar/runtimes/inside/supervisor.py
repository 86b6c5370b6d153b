# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PTH103, PTH108, PTH120 (importing pathlib would double the start-up time)
"""The first process of a sandbox: obeys frames on stdin, answers on stdout, and outlives nothing it was told to end.

Operations: `run`, `kill`, `read`, `write`, `ping`. One command at a time; when a command ends, so does every process
that it left behind, daemons included. When stdin closes, the supervisor ends, and with it the sandbox.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import stat
import sys
import time

from . import forward, processes
from .command import Command, Stream
from .frames import Frames, send

TYPE_CHECKING = False  # importing typing would cost as much as all the rest
if TYPE_CHECKING:
    from typing import Any

TICK = 0.5  # seconds between two looks at the number of processes
STDIN, STDOUT = 0, 1
SHOWN = 1000  # characters of an error, which may repeat a path of any length


class Supervisor:
    def __init__(self, config: dict[str, Any]) -> None:
        self.max_processes: int = config["max_processes"]
        self.max_output: int = config["max_output"]
        self.processes = processes.Namespace() if config["namespace"] else processes.Subtree()
        self.control = Frames(STDIN)
        self.selector = selectors.DefaultSelector()
        self.command: Command | None = None
        self.request: dict[str, Any] = {}
        self.forwarded = 0
        self.next_look = 0.0

    def serve(self) -> None:
        self.selector.register(STDIN, selectors.EVENT_READ)
        self.selector.register(wake_on_child(), selectors.EVENT_READ)
        send(STDOUT, {"id": 0})
        while True:
            for key, _ in self.selector.select(self.patience()):
                if isinstance(key.data, Stream):
                    self.pump(key.data)
                elif key.fd == STDIN:
                    for header, payload in self.control.receive():
                        self.obey(header, payload)
                else:
                    os.read(key.fd, 512)
            self.reap()
            self.watch()

    def patience(self) -> float | None:
        """Seconds that the loop may sleep."""
        if not self.command:
            return None
        left: float = self.request["timeout"] - self.command.seconds
        return max(0.0, min(TICK, left))

    def obey(self, header: dict[str, Any], payload: bytes) -> None:
        try:
            if header["op"] == "run":
                self.run(header)
            elif header["op"] == "kill":
                self.finish("time")
            else:
                send(STDOUT, {"id": header["id"]}, OPERATIONS[header["op"]](header, payload))
        except (OSError, ValueError) as error:
            send(STDOUT, {"id": header["id"], "error": str(error)[:SHOWN]})

    def run(self, header: dict[str, Any]) -> None:
        if self.command:
            raise ValueError("a command is already running in this sandbox")
        os.chdir(header["cwd"])
        self.request, self.forwarded, self.next_look = header, 0, time.monotonic() + TICK
        self.command = Command(header["argv"], header["env"], keep=header["keep"])
        for stream in self.command.streams:
            self.selector.register(stream.descriptor, selectors.EVENT_READ, stream)

    def pump(self, stream: Stream) -> None:
        if stream.descriptor not in self.selector.get_map():
            return  # its command was ended by an earlier event of this round
        data = stream.read()
        if data:
            self.forward(stream, data)
        else:
            self.selector.unregister(stream.descriptor)

    def forward(self, stream: Stream, data: bytes) -> None:
        """Pass output on up to the log's limit; what is beyond it is only counted."""
        data = data[: max(0, self.request["log_limit"] - self.forwarded)]
        self.forwarded += len(data)
        if data:
            send(STDOUT, {"id": self.request["id"], "stream": stream.name}, data)

    def reap(self) -> None:
        """Collect the dead: as PID 1 or subreaper, other processes' orphans too."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if self.command:
                    self.command.ended(*ended)
        except ChildProcessError:
            pass
        if self.command and self.command.code is not None:
            self.finish("")

    def watch(self) -> None:
        if not self.command:
            return
        if self.command.seconds > self.request["timeout"]:
            self.finish("time")
        elif self.command.output > self.max_output:
            self.finish("output")
        elif time.monotonic() > self.next_look:
            self.next_look = time.monotonic() + TICK
            if self.processes.count() > self.max_processes:
                self.finish("processes")

    def finish(self, killed_for: str) -> None:
        """End every process of the command and report how it went."""
        command, self.command = self.command, None
        if command is None:
            return
        seconds = command.seconds
        if not processes.clear(self.processes):
            os._exit(1)  # something can't be killed: the kernel takes the whole sandbox instead
        for stream in command.streams:
            if stream.descriptor in self.selector.get_map():
                self.selector.unregister(stream.descriptor)
        command.drain(self.forward)
        tails = [stream.last() for stream in command.streams]
        report = {"code": None if killed_for else command.code, "killed_for": killed_for, "seconds": seconds}
        split = {"stdout": len(tails[0]), "output": command.output}
        send(STDOUT, {"id": self.request["id"], **report, **split}, b"".join(tails))


def write(header: dict[str, Any], payload: bytes) -> bytes:
    """A link (to /dev/null?) or a pipe in the file's place makes room: the data must not be swallowed."""
    path = header["path"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW
    flags |= os.O_APPEND if header["append"] else os.O_TRUNC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        os.fchmod(file.fileno(), header["mode"])
        file.write(payload)
    return b""


def read(header: dict[str, Any], _: bytes) -> bytes:
    """A regular file of bounded size: a pipe or device put in its place must not hang the sandbox."""
    with os.fdopen(os.open(header["path"], os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{header['path']}: not a regular file")
        data = file.read(header["limit"] + 1)
    if len(data) > header["limit"]:
        raise ValueError(f"{header['path']}: larger than {header['limit']} bytes")
    return data


def ping(_: dict[str, Any], __: bytes) -> bytes:
    return b""


OPERATIONS = {"read": read, "write": write, "ping": ping}


def wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return reader


def lower(limits: dict[str, int]) -> None:
    """Set resource limits, never above what this process already has."""
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def remove(directory: str) -> None:
    """Leave no files behind, even if whoever made them was killed."""
    import shutil  # here, because it is the end: at the start it would cost every sandbox its time

    os.chdir("/")
    shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    config = json.loads(sys.argv[1])
    if config["become"]:
        processes.become(**config["become"])
    processes.protect()
    supervisor = Supervisor(config)
    lower(config["limits"])
    if config["cpus"]:
        os.sched_setaffinity(0, config["cpus"])
    if config["gateway"]:
        forward.start(config["port"], config["gateway"])
    try:
        supervisor.serve()
    except (EOFError, BrokenPipeError):
        processes.clear(supervisor.processes)
        if config.get("remove"):
            remove(config["remove"])
