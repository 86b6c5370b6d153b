# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a task does to make a sandbox ready: uploads and commands, in order.

Uploads come from one directory of this machine (`assets`) and from nowhere else: whoever may send tasks may not thereby
read the machine's files.
"""

from __future__ import annotations

import asyncio
import os
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from nemo_gym_polar.rollouts.specs import PrepareAction
from nemo_gym_polar.runtimes.base import Exit, Runtime, SandboxError

PIECE = 1 << 20  # bytes
SHOWN = 300  # characters of a failed command's last line


@dataclass(frozen=True, slots=True)
class Actions:
    """Steps under the name that errors call them by. `assets` None: nothing can be uploaded."""

    name: str
    steps: Sequence[PrepareAction]
    assets: Path | None

    def check(self) -> None:
        """Raise `SandboxError` for an upload that can't work."""
        for number, step in enumerate(self.steps):
            if step.type != "exec":
                self.source(number, step)

    async def perform(self, runtime: Runtime, seconds_left: Callable[[], float]) -> None:
        """Raises `SandboxError` for the first step that fails for good, `TimeoutError` for one that had no time."""
        for number, step in enumerate(self.steps):
            if step.type == "exec":
                await self.execute(runtime, number, step, seconds_left)
            else:
                await self.upload(runtime, number, step, seconds_left)

    async def execute(self, runtime: Runtime, number: int, step: PrepareAction, left: Callable[[], float]) -> None:
        argv = ["bash", "-c", str(step.command)]
        cwd = str(PurePosixPath(runtime.workspace, step.cwd)) if step.cwd else None
        for attempt in range(step.max_attempts):
            if attempt:
                await asyncio.sleep(step.retry_backoff_seconds)
            ended = await runtime.run(argv, env=step.env, cwd=cwd, timeout=left())
            if ended.code == 0:
                return
            if ended.timed_out:
                raise TimeoutError
        raise SandboxError(f"{self.field(number)}.command={shorten(str(step.command))!r} {reason(ended)}")

    async def upload(self, runtime: Runtime, number: int, step: PrepareAction, left: Callable[[], float]) -> None:
        source = self.source(number, step)
        target = str(PurePosixPath(runtime.workspace, str(step.target)))
        send = upload_file if step.type == "upload_file" else upload_directory
        try:
            await send(runtime, source, target, left())
        except OSError as error:
            field = f"{self.field(number)}.source={step.source!r}"
            raise SandboxError(f"{field} can't be read: {error.strerror}") from error

    def source(self, number: int, step: PrepareAction) -> Path:
        field = f"{self.field(number)}.source={step.source!r}"
        if self.assets is None:
            raise SandboxError(f"{field}: this service uploads nothing; its operator may set assets to a directory")
        root = self.assets.resolve()
        found = (root / str(step.source)).resolve()
        if not found.is_relative_to(root):
            raise SandboxError(f"{field} is not in the service's assets directory; put it there")
        if not (found.is_dir() if step.type == "upload_dir" else found.is_file()):
            kind = "directory" if step.type == "upload_dir" else "file"
            raise SandboxError(f"{field}: no such {kind} in the service's assets directory; put it there")
        return found

    def field(self, number: int) -> str:
        return f"runtime.{self.name}[{number}]"


async def upload_file(runtime: Runtime, source: Path, target: str, seconds: float) -> None:
    """In pieces, with the source's permission to execute."""
    with source.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o755 | 0o600
        await runtime.write(target, b"", mode=mode)
        while piece := await asyncio.to_thread(file.read, PIECE):
            await runtime.write(target, piece, append=True, mode=mode)


async def upload_directory(runtime: Runtime, source: Path, target: str, seconds: float) -> None:
    """What is in `source` comes to lie in `target`; links stay links."""
    with tempfile.TemporaryFile() as archive:
        await asyncio.to_thread(pack, source, archive)
        await runtime.restore(archive, target, timeout=seconds)


def pack(source: Path, archive: IO[bytes]) -> None:
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(source, arcname=".")


def reason(ended: Exit) -> str:
    said = (ended.stderr or ended.stdout).decode(errors="replace").strip().splitlines()
    why = f"exit code {ended.code}" if ended.code is not None else f"killed for {ended.killed_for}"
    return f"failed: {why}{': ' + said[-1][:SHOWN] if said else ''}"


def shorten(command: str) -> str:
    return command if len(command) <= SHOWN else f"{command[:SHOWN]}…"


def within(target: str, workspace: str) -> bool:
    """Does an upload's target lie in the workspace?"""
    return PurePosixPath(workspace, target).is_relative_to(workspace)
