# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A command's output on disk, as it comes; how much of it arrives here is bounded inside the sandbox."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self


class BoundedLog:
    """Appends both streams to one file. A full disk stops the log, never the session."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        self.broken = ""

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("ab", buffering=0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.file.close()

    def __call__(self, stream: str, data: bytes) -> None:
        if self.broken:
            return
        try:
            self.written += self.file.write(data)
        except OSError as error:
            self.broken = str(error)

    def note_lost(self, printed: int) -> None:
        """Say at the end of the file what of `printed` bytes it does not hold."""
        if lost := printed - self.written:
            self("stderr", f"\n[{lost} bytes more were printed and not kept]\n".encode())
