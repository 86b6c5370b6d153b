# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The scripted engine as a process that can be killed: every answer is another one, and is written down before it
leaves. It takes its time, now and then much of it.

python -m tests.support.chaos_engine TOKENIZER PORT NAME LOG HOST
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from tests.support.fake_engine import FakeEngine, Served

USUAL = (0.02, 0.3)  # seconds
SLOW, EVERY = 3.0, 17  # one answer in so many takes that long


class ChaosEngine(FakeEngine):
    """`log` has one line for each answer. The delays follow from the name."""

    def __init__(self, tokenizer: Path, port: int, name: str, log: Path, host: str = "127.0.0.1") -> None:
        numbers = itertools.count(1)
        super().__init__(tokenizer, script=lambda _: f"Answer {name} {next(numbers)}.", host=host, port=port)
        self.log = log
        self.chance = random.Random(name)

    async def _sample(self, path: str, context: list[int], parameters: dict[str, Any]) -> Served:
        self.delay = SLOW if self.chance.randrange(EVERY) == 0 else self.chance.uniform(*USUAL)
        served = await FakeEngine._sample(self, path, context, parameters)
        with self.log.open("ab") as log:
            log.write(orjson.dumps({"context": context, "sampled": served.sampled}) + b"\n")
        return served


@contextlib.asynccontextmanager
async def chaos_engine(tokenizer: Path, name: str, log: Path, port: int = 0) -> AsyncIterator[tuple[Process, str]]:
    """The process and its URL."""
    async with started(engine_command(tokenizer, name, log, port)) as made:
        yield made


def engine_command(tokenizer: Path, name: str, log: Path, port: int = 0, host: str = "127.0.0.1") -> list[str]:
    return [sys.executable, "-m", "tests.support.chaos_engine", str(tokenizer), str(port), name, str(log), host]


@contextlib.asynccontextmanager
async def started(command: Sequence[str]) -> AsyncIterator[tuple[Process, str]]:
    """The process and its URL; it ends when its stdin closes, too."""
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout
    try:
        yield process, (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def main(tokenizer: str, port: str, name: str, log: str, host: str) -> None:
    async with ChaosEngine(Path(tokenizer), int(port), name, Path(log), host) as engine:
        print(engine.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:6]))
