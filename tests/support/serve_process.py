# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar serve` as a process of its own: the rollout service, or a node of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from tests.support.commands import command_line, run_command
from tests.support.fake_engine import FakeEngine

TOKEN = "hush-hush"


def engine_options(engine: FakeEngine) -> list[str]:
    model = ["--model", "tiny", "--tokenizer", str(engine.tokenizer_directory)]
    return ["--engine", engine.url, *model, "--renderer-options", '{"enable_thinking": false}']


class ServeProcess:
    """With `options`, in `directory`, until the block ends. `url` is what it said first."""

    def __init__(self, directory: Path, *options: str, token: str = TOKEN) -> None:
        self.directory = directory
        self.options = options
        self.token = token
        self.log = directory / "serve.log"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(signal.SIGKILL)

    async def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        line = command_line("polar", "serve", *self.options)
        environment = {**os.environ, "POLAR_CONTROL_TOKEN": self.token}
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *line, cwd=self.directory, env=environment, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        assert self.process.stdout
        async with asyncio.timeout(180):
            said = (await self.process.stdout.readline()).decode()
        assert " on http" in said, said + self.log.read_text()
        self.url = said.partition(" on ")[2].split(";")[0].split(",")[0].strip()

    async def stop(self, number: signal.Signals, seconds: float = 150.0) -> int | None:
        if self.process.returncode is None:
            self.process.send_signal(number)
            await asyncio.wait_for(self.process.wait(), seconds)
        return self.process.returncode

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    async def polar(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that speaks to this service."""
        environment = {"POLAR_URL": self.url, "POLAR_CONTROL_TOKEN": self.token}
        return await asyncio.to_thread(run_command, self.directory, "polar", *arguments, **environment)


def write_task(path: Path, task: dict[str, Any]) -> Path:
    path.write_bytes(orjson.dumps(task))
    return path
