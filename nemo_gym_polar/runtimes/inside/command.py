# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One command in the sandbox: its start, its two output streams, and the limits it may break."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False  # importing typing would cost as much as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 1 << 16
NOT_FOUND = 127
NOT_EXECUTABLE = 126


class Stream:
    """Output of one descriptor: only the last `keep` bytes stay in memory."""

    def __init__(self, name: str, descriptor: int, keep: int) -> None:
        self.name = name
        self.descriptor = descriptor
        self.keep = keep
        self.total = 0
        self.tail = bytearray()

    def read(self) -> bytes:
        data = os.read(self.descriptor, CHUNK)
        self.total += len(data)
        self.tail += data
        if len(self.tail) > 2 * self.keep:
            del self.tail[: -self.keep]
        return data

    def last(self) -> bytes:
        return bytes(self.tail[-self.keep :]) if self.keep else b""


class Command:
    """A running process with pipes on stdout and stderr; stdin is empty."""

    def __init__(self, argv: list[str], env: dict[str, str], *, keep: int) -> None:
        self.began = time.monotonic()
        ends = [os.pipe(), os.pipe()]
        self.streams = [Stream(name, end[0], keep) for name, end in zip(("stdout", "stderr"), ends, strict=True)]
        self.pid, self.code = 0, None if argv else NOT_FOUND
        try:
            self.pid = spawn(argv, env, ends[0][1], ends[1][1])
        except OSError as error:
            self.code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            os.write(ends[1][1], f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            for _, writer in ends:
                os.close(writer)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def output(self) -> int:
        return sum(stream.total for stream in self.streams)

    def ended(self, pid: int, status: int) -> None:
        """Take note of a reaped process, if it is this command's own."""
        if pid == self.pid:
            self.code = os.waitstatus_to_exitcode(status)

    def drain(self, forward: Callable[[Stream, bytes], None]) -> None:
        """Read what is left after all writers are gone, and close."""
        for stream in self.streams:
            while data := stream.read():
                forward(stream, data)
            os.close(stream.descriptor)


def spawn(argv: list[str], env: dict[str, str], stdout: int, stderr: int) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    defaults = [signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ]
    return os.posix_spawnp(argv[0], argv, env, file_actions=actions, setsid=True, setsigdef=defaults)
