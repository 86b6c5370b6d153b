# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Where a harness runs: a sandbox with a fixed workspace path, home, user and host name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol


class SandboxError(Exception):
    """The sandbox itself failed: it did not start, it died, or it was asked for what it can't give."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended. `code` is None when it was killed; tails are the last bytes of each stream.

    `killed_for` names the limit that it broke («» if none): `time`, `output` or `processes`.
    """

    code: int | None
    timed_out: bool
    stdout: bytes
    stderr: bytes
    seconds: float
    killed_for: str = ""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host directory that the runtime shows read-only at `target`, a path equal on every machine."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Needs:
    """What a task asks of its sandbox. None: whatever the backend gives by itself.

    `workdir` is the workspace's path inside, `env` goes to every command, `cpus` may be a fraction, sizes are in MiB.
    """

    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    network: str | None = None
    allow_internet: bool | None = None
    workdir: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None


NO_NEEDS = Needs()


class Runtime(Protocol):
    """One sandbox. Paths are those seen inside; `start` before anything else, `stop` ends every process in it.

    `run` starts in the workspace unless `cwd` says otherwise; what is `hidden` appears in no log. `save` packs a
    directory into an open tar file here, `restore` unpacks one; with `clean`, the directory is emptied first.
    """

    workspace: str
    home: str
    gateway_url: str

    async def start(self) -> None: ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float,
        log: Path | None = None,
        hidden: Sequence[str] = (),
    ) -> Exit: ...

    async def write(self, path: str, data: bytes, *, append: bool = False, mode: int = 0o644) -> None: ...

    async def read(self, path: str) -> bytes: ...

    async def save(self, directory: str, archive: IO[bytes], *, timeout: float) -> None: ...

    async def restore(self, archive: IO[bytes], directory: str, *, clean: bool = False, timeout: float) -> None: ...

    async def alive(self) -> bool: ...

    async def stop(self) -> None: ...
