# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A command on a real pseudo-terminal, as a person sees it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Mapping
from types import TracebackType
from typing import Self

# Makes the terminal the command's own, so that Ctrl-C reaches it; then becomes the command.
OWN = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
UP = "\x1b[1A"
INTERRUPT = b"\x03"


class Terminal:
    """Runs `line` until the block ends. `told` is all that came, control sequences included."""

    def __init__(self, *line: str, lines: int = 24, columns: int = 100, environment: Mapping[str, str]) -> None:
        self.line, self.size, self.environment = line, (lines, columns), environment
        self.told = ""
        self._moved = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *self.size, 0, 0))
        os.set_blocking(self.master, False)
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **self.environment}
        try:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", OWN, *self.line, stdin=slave, stdout=slave, stderr=slave, env=environment
            )
        finally:
            os.close(slave)
        asyncio.get_running_loop().add_reader(self.master, self._read)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        asyncio.get_running_loop().remove_reader(self.master)
        os.close(self.master)

    def _read(self) -> None:
        try:
            self.told += os.read(self.master, 65536).decode(errors="replace")
        except OSError:  # the command has ended
            asyncio.get_running_loop().remove_reader(self.master)
        self._moved.set()

    async def until(self, words: str, seconds: float = 120.0) -> None:
        """It is on the last picture; runs of spaces count as one."""
        try:
            async with asyncio.timeout(seconds):
                while words not in self.shown:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise AssertionError(f"{words!r} was not shown: {self.shown}") from None

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    async def ended(self, seconds: float = 120.0) -> int:
        return await asyncio.wait_for(self.process.wait(), seconds)

    @property
    def shown(self) -> str:
        """The last picture, and what came after it."""
        return re.sub(" +", " ", CONTROL.sub("", self.told.rpartition(UP)[2]))
