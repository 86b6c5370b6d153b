# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Gateways as running processes, all in front of one engine, and what each costs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from corpus import Corpus
from gateways import Gateway, Place
from gateways.base import post, size
from gateways.polar import Polar
from processes import ROOT, child, cpu_of, resident_of, tree

START_SECONDS = 120.0
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")


@dataclass
class Server:
    """A gateway that runs. `cpu` and `resident` are of its whole process tree, as it was when it was ready."""

    gateway: Gateway
    place: Place
    pids: list[int] = field(default_factory=list)

    def cpu(self) -> float:
        return sum(cpu_of(pid) for pid in self.pids)

    def resident(self) -> int:
        return sum(resident_of(pid) for pid in self.pids)

    def kept(self) -> int:
        return size(self.gateway.kept(self.place))


@dataclass
class Bench:
    """All servers of a run; `shape` sets what conversations are like."""

    client: aiohttp.ClientSession
    engine: str
    servers: list[Server]

    async def shape(self, start: int, sampled: int, observed: int) -> None:
        await post(self.client, f"{self.engine}/shape", {"start": start, "sampled": sampled, "observed": observed})


@contextlib.asynccontextmanager
async def running(
    gateways: list[Gateway], script: dict[str, Any], corpus: Corpus, scratch: Path
) -> AsyncIterator[Bench]:
    """Started one after the other, each in a directory of its own below `scratch`; killed at the end."""
    answers = scratch / "script.json"
    answers.write_text(json.dumps(script))
    connector = aiohttp.TCPConnector(limit=64)
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(child(str(ROOT / "benchmarks" / "conversation_engine.py"), str(answers)))
        async with aiohttp.ClientSession(connector=connector) as client:
            servers = []
            for gateway in gateways:
                place = Place(engine.first_line, _free_port(), scratch / gateway.name, corpus.directory)
                place.scratch.mkdir()
                pid = engine.process.pid if gateway.name == "direct" else stack.enter_context(_process(gateway, place))
                servers.append(await _ready(client, Server(gateway, place), pid))
            yield Bench(client, engine.first_line, servers)


@contextlib.contextmanager
def _process(gateway: Gateway, place: Place) -> Iterator[int]:
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    threads = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false"}
    environment = {**passed, **threads, **gateway.environment(place)}
    with (place.scratch / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            gateway.command(place), cwd=gateway.directory(place), env=environment, stdout=log, stderr=log
        )
    try:
        yield process.pid
    finally:
        for pid in reversed(tree(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        process.wait()
        if isinstance(gateway, Polar):
            gateway.clean(place)


async def _ready(client: aiohttp.ClientSession, server: Server, pid: int) -> Server:
    """Wait until it speaks HTTP, whatever it says."""
    if server.gateway.name != "direct":
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        while not await _answers(client, f"{server.place.url}/health"):
            if asyncio.get_running_loop().time() > deadline or not _lives(pid):
                log = (server.place.scratch / "log.txt").read_text()[-3000:]
                raise SystemExit(f"benchmarks: {server.gateway.name} did not start:\n{log}")
            await asyncio.sleep(0.2)
        await server.gateway.prepare(client, server.place)
    server.pids = tree(pid)
    return server


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def _answers(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with client.get(url, timeout=aiohttp.ClientTimeout(total=5)) as reply:
            return reply.status < 500
    except (aiohttp.ClientError, TimeoutError):
        return False


def _free_port() -> int:
    """One that was free a moment ago; the next is likely free too, for servers that need a second."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
