# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A sandbox whose first process is our supervisor: what `bubblewrap` and `local` share.

The supervisor ends when its stdin closes, which the kernel does for us when this process dies in any way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from nemo_gym_polar.runtimes.base import Exit, Needs, SandboxError
from nemo_gym_polar.runtimes.channel import Channel, Output
from nemo_gym_polar.runtimes.cleanup import to_the_end
from nemo_gym_polar.runtimes.inside.processes import descendants
from nemo_gym_polar.runtimes.limits import MIB, Limits
from nemo_gym_polar.runtimes.log import BoundedLog, Packed

INSIDE = Path(__file__).with_name("inside")
KEEP = 1 << 16  # bytes of each stream that an `Exit` carries
MAX_READ = 16 << 20
START_SECONDS = 20.0
ANSWER_SECONDS = 30.0
ALIVE_SECONDS = 10.0
PIECE = 1 << 20  # bytes of a file that travel in one frame
UNPACK = """
set -e
mkdir -p "$1"
if [ -n "$3" ]; then find "$1" -mindepth 1 -delete; fi
tar -C "$1" --no-same-owner -xf "$2"
rm "$2"
"""
GRACE_SECONDS = 10.0  # a command's own limit is kept inside; this much later we stop believing in the sandbox


def supervise(parent: str) -> str:
    """Python code that starts the supervisor from the directory `parent`/inside, without `site` or the environment."""
    return f"import sys; sys.path.insert(0, {parent!r}); from inside.supervisor import main; main()"


class SupervisedRuntime(ABC):
    """Implements `Runtime` on a supervisor; a subclass says how to start it and what surrounds it."""

    workspace: str
    home: str
    gateway_url: str
    limits: Limits
    needs: Needs

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.channel: Channel | None = None
        self.turn = asyncio.Lock()
        self.ending: asyncio.Task[None] | None = None

    @abstractmethod
    def command(self, config: str) -> list[str]:
        """The command line that starts the supervisor with its JSON `config`."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What the supervisor must know (see `inside/supervisor.py`)."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """What every command gets unless it says otherwise."""

    @abstractmethod
    def explain(self, failure: str) -> str:
        """Why the sandbox did not start, in one line, with the remedy."""

    async def start(self) -> None:
        with tempfile.TemporaryFile() as stderr:
            try:
                await to_the_end(self.spawn(stderr))
                assert self.channel
                await asyncio.wait_for(self.channel.ready, START_SECONDS)
            except (SandboxError, OSError) as error:
                await self.stop()
                reason = last_line(stderr) or str(error) or f"no answer within {START_SECONDS:.0f} s"
                raise SandboxError(self.explain(reason)) from None
            except BaseException:
                await self.stop()
                raise

    async def spawn(self, stderr: IO[bytes]) -> None:
        """Not to be cancelled: asyncio would wait for ever for a process whose pipes it hadn't connected yet."""
        pipe = asyncio.subprocess.PIPE
        argv = self.command(json.dumps(self.config()))
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True, env={"PATH": "/usr/bin:/bin"}
        )
        assert process.stdin and process.stdout
        self.process, self.channel = process, Channel(process.stdout, process.stdin)

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float,
        log: Path | None = None,
        hidden: Sequence[str] = (),
    ) -> Exit:
        """Run a command to its end; nothing that it started is alive afterwards."""
        variables = {**self.environment(), **self.needs.env, **(env or {})}
        fields: dict[str, Any] = {
            "argv": list(argv),
            "env": variables,
            "cwd": cwd or self.workspace,
            "timeout": timeout,
        }
        if log is None:
            return (await self.command_to_end(fields))[0]
        with BoundedLog(log, hidden) as output:
            ended, printed = await self.command_to_end(fields, output, self.limits.log_bytes)
            output.note_lost(printed)
            return ended

    async def command_to_end(
        self, fields: Mapping[str, Any], output: Output | None = None, limit: int = 0
    ) -> tuple[Exit, int]:
        """How it ended and how many bytes it printed; the first `limit` of them go to `output`."""
        async with self.turn:
            began, within = time.monotonic(), fields["timeout"] + GRACE_SECONDS
            call = self.connected.call("run", output=output, within=within, keep=KEEP, log_limit=limit, **fields)
            try:
                header, tails = await call
            except asyncio.CancelledError:
                self.connected.tell("kill")
                raise
        return ended(header, tails, min(header["seconds"], time.monotonic() - began)), header["output"]

    async def write(self, path: str, data: bytes, *, append: bool = False, mode: int = 0o644) -> None:
        """A link or a pipe in the file's place is replaced, not followed."""
        for at in range(0, max(1, len(data)), PIECE):
            fields: dict[str, Any] = {"path": path, "append": append or at > 0, "mode": mode}
            await self.connected.call("write", data[at : at + PIECE], within=ANSWER_SECONDS, **fields)

    async def save(self, directory: str, archive: IO[bytes], *, timeout: float) -> None:
        argv = ["tar", "-C", directory, "--ignore-failed-read", "-cf", "-", "."]
        fields: dict[str, Any] = {"argv": argv, "env": self.environment(), "cwd": "/", "timeout": timeout}
        limit, output = self.limits.output_mb * MIB, Packed(archive)
        packed, printed = await self.command_to_end(fields, output, limit)
        if packed.killed_for == "output" or printed > limit:
            most = f"{self.limits.output_mb} MiB"
            raise SandboxError(f"{directory} is larger than {most}: raise runtime.settings.output_mb")
        check(packed, f"{directory} can't be packed")
        output.check(directory)

    async def restore(self, archive: IO[bytes], directory: str, *, clean: bool = False, timeout: float) -> None:
        inside = f"{self.home}/.polar.tar"
        archive.seek(0)
        await self.write(inside, b"")
        while piece := await asyncio.to_thread(archive.read, PIECE):
            await self.write(inside, piece, append=True)
        argv = ["bash", "-c", UNPACK, "unpack", directory, inside, "clean" if clean else ""]
        check(await self.run(argv, cwd="/", timeout=timeout), f"{directory} can't be filled")

    async def read(self, path: str) -> bytes:
        call = self.connected.call("read", within=ANSWER_SECONDS, path=path, limit=MAX_READ)
        return (await call)[1]

    async def alive(self) -> bool:
        """True if the supervisor answers."""
        if self.channel is None:
            return False
        try:
            await self.channel.call("ping", within=ALIVE_SECONDS)
        except SandboxError:
            return False
        return True

    @property
    def connected(self) -> Channel:
        if self.channel is None:
            raise SandboxError("the sandbox is not started")
        return self.channel

    async def stop(self) -> None:
        """End every process in the sandbox, kindly or not. Safe at any time, also twice and while being cancelled."""
        if self.ending is None or self.ending.done():
            self.ending = asyncio.create_task(self.end())
        await asyncio.shield(self.ending)

    async def end(self) -> None:
        process, channel = self.process, self.channel
        self.process = self.channel = None
        if process is None or channel is None:
            return
        channel.writer.close()
        try:
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        except TimeoutError:
            for pid in (*descendants(process.pid), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await process.wait()
        await channel.close()


def ended(header: Mapping[str, Any], tails: bytes, seconds: float) -> Exit:
    reason, split = header["killed_for"], header["stdout"]
    return Exit(header["code"], reason == "time", tails[:split], tails[split:], seconds, reason)


def check(ended: Exit, failure: str) -> None:
    if ended.code != 0:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        why = f"took longer than {ended.seconds:.0f} s" if ended.timed_out else ended.killed_for or f"code {ended.code}"
        raise SandboxError(f"{failure}: {said[-1] if said and not ended.timed_out else why}")


def last_line(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read(KEEP).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
