# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The `gym` command line as a user runs it, in an unrelated directory, and nothing left of it afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

RAY_HEAD = Path(__file__).with_name("ray_head.py")
MARK = "POLAR_TEST_GYM"
READY = "servers ready! Polling"


@dataclass(slots=True)
class GymCommand:
    """`venv` has `gym`, `cwd` is where it is called. Every process that comes of it carries `mark`."""

    venv: Path
    cwd: Path
    ray: str = ""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def environment(self) -> dict[str, str]:
        own = {MARK: self.mark, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "COLUMNS": "200"}
        # Without compiled files, if there are none yet, each of Ray's processes takes thrice the time to start.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, **own}

    def run(self, *arguments: str, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Runs to its end."""
        return subprocess.run(
            [str(self.venv / "bin" / "gym"), *arguments],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def processes(self) -> list[psutil.Process]:
        """Everything that is still alive of it."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def gone(self, within: float) -> bool:
        deadline = time.monotonic() + within
        while self.processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def kill(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    @contextlib.contextmanager
    def cluster(self) -> Iterator[None]:
        """A Ray cluster for the servers that are started in the block."""
        # Ray puts sockets below this directory, and their paths may have 107 bytes.
        temporary = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        with temporary as directory, self._head(Path(directory)) as head:
            yield
            assert head.stdin is not None
            head.stdin.close()
            head.wait(60)

    def _head(self, directory: Path, attempts: int = 6) -> subprocess.Popen[str]:
        """Ray gives its own processes 30 seconds, which a busy machine may need a second time."""
        pipe = subprocess.PIPE
        for attempt in range(attempts):
            command = [str(self.venv / "bin" / "python"), str(RAY_HEAD), str(directory / str(attempt))]
            head = subprocess.Popen(command, env=self.environment, stdin=pipe, stdout=pipe, text=True)
            assert head.stdout is not None
            self.ray = head.stdout.readline().strip()
            if self.ray:
                return head
            with head:
                head.wait(60)
        raise AssertionError(f"Ray did not start in {attempts} attempts")

    @contextlib.contextmanager
    def servers(self, *arguments: str, log: Path, within: float = 150.0) -> Iterator[subprocess.Popen[bytes]]:
        """`gym env start`, ready; ended by SIGTERM, as a service manager would."""
        command = [str(self.venv / "bin" / "gym"), "env", "start", f"+ray_head_node_address={self.ray}", *arguments]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.cwd, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            self._wait(process, log, within)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)

    def _wait(self, process: subprocess.Popen[bytes], log: Path, within: float) -> None:
        deadline = time.monotonic() + within
        while READY not in log.read_text(errors="replace"):
            ended = process.poll()
            assert ended is None, f"gym env start ended with {ended}: {log.read_text(errors='replace')[-3000:]}"
            assert time.monotonic() < deadline, f"not ready in time: {log.read_text(errors='replace')[-3000:]}"
            time.sleep(0.2)


def free_ports(count: int) -> Sequence[int]:
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]
