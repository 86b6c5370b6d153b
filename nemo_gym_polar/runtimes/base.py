# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Where a harness runs: a sandbox with a fixed workspace path, home, user and host name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended. `code` is None when it was killed for time; tails are the last bytes of each stream."""

    code: int | None
    timed_out: bool
    stdout: bytes
    stderr: bytes
    seconds: float


class Runtime(Protocol):
    """One sandbox. Paths are those seen inside; `start` before anything else, `stop` ends every process in it."""

    workspace: str
    home: str
    gateway_url: str

    async def start(self) -> None: ...

    async def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float, log: Path | None = None
    ) -> Exit: ...

    async def write(self, path: str, data: bytes) -> None: ...

    async def read(self, path: str) -> bytes: ...

    async def alive(self) -> bool: ...

    async def stop(self) -> None: ...
