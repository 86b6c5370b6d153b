# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A command's output on disk, as it comes; how much of it arrives here is bounded inside the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from nemo_gym_polar.runtimes.base import SandboxError

MASK = b"[hidden]"


class Masked:
    """Bytes with the secrets replaced, also one that comes in two pieces: what may be its beginning is kept back."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self.secrets = [secret for secret in secrets if secret]
        self.kept = b""

    def __call__(self, data: bytes) -> bytes:
        data = self.kept + data
        for secret in self.secrets:
            data = data.replace(secret, MASK)
        begun = max((self.begun(data, secret) for secret in self.secrets), default=0)
        data, self.kept = data[: len(data) - begun], data[len(data) - begun :]
        return data

    @staticmethod
    def begun(data: bytes, secret: bytes) -> int:
        """How many of the last bytes may be the beginning of the secret."""
        most = min(len(data), len(secret) - 1)
        return next((size for size in range(most, 0, -1) if data.endswith(secret[:size])), 0)

    def rest(self) -> bytes:
        kept, self.kept = self.kept, b""
        return kept


class BoundedLog:
    """Appends both streams to one file, without what is `hidden`. A full disk stops the log, never the session."""

    def __init__(self, path: Path, hidden: Sequence[str] = ()) -> None:
        self.path = path
        self.seen = 0
        self.broken = ""
        self.masked = {name: Masked([secret.encode() for secret in hidden]) for name in ("stdout", "stderr")}

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("ab", buffering=0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()
        self.file.close()

    def __call__(self, stream: str, data: bytes) -> None:
        self.seen += len(data)
        self.put(self.masked[stream](data))

    def put(self, data: bytes) -> None:
        if self.broken:
            return
        try:
            self.file.write(data)
        except OSError as error:
            self.broken = str(error)

    def flush(self) -> None:
        for masked in self.masked.values():
            self.put(masked.rest())

    def note_lost(self, printed: int) -> None:
        """Say at the end of the file what of `printed` bytes it does not hold."""
        self.flush()
        if lost := printed - self.seen:
            self.put(f"\n[{lost} bytes more were printed and not kept]\n".encode())


class Packed:
    """A command's output as one file. What the disk here refuses is said when the command has ended."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.refused = ""

    def __call__(self, stream: str, data: bytes) -> None:
        if stream == "stdout" and not self.refused:
            self.attempt(data)

    def attempt(self, data: bytes) -> None:
        try:
            self.file.write(data)
            self.file.flush()
        except OSError as error:
            self.refused = str(error)

    def check(self, name: str) -> None:
        if self.refused:
            raise SandboxError(f"{name} can't be kept on this machine: {self.refused}")
