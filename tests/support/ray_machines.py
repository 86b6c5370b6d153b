# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster and a rollout service on machines with addresses of their own, started as the documentation says."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from nemo_gym_polar.rollouts.task import AgentSpec
from tests.support.chaos_engine import engine_command, started
from tests.support.chaos_run import ANSWERS, HARNESS, Record
from tests.support.commands import command_line
from tests.support.ray_hosts import ATTEMPTS, MEMORY, environment
from tests.support.ray_networks import Machine, Network
from tests.support.rollouts import task

PORT = 6379
PATIENCE = 300.0  # seconds for what takes ten on an idle machine
PATIENT = {"RAY_health_check_failure_threshold": "240"}  # Ray doubts no machine that is only slow
RAY = (sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats", "--include-log-monitor=false")
FEW = ("--include-dashboard=false", "--no-monitor")  # a head with few processes


class CommandError(AssertionError):
    """A command failed on a machine."""


@dataclass(slots=True)
class Site:
    """The service is on the head, which has no node; `place` is its directory and that of all nodes, each its own disk.

    `ray` is more of Ray's environment. `shared` is a directory that all machines see.
    """

    network: Network
    tokenizer: Path
    shared: Path
    ray: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    service: Process | None = None

    @property
    def head(self) -> Machine:
        return self.network.machines[1]

    @property
    def machines(self) -> list[Machine]:
        """Those that get nodes."""
        return self.network.machines[2:]

    @property
    def address(self) -> str:
        return f"{self.head.address}:{PORT}"

    @property
    def log(self) -> Path:
        return self.shared / "sampled.jsonl"

    @property
    def record(self) -> Record:
        return Record(self.head.disk, self.log, tuple(machine.disk for machine in self.network.machines))

    # What is started

    async def start_cluster(self) -> None:
        await self._start(self.head, 0, "--head", f"--node-ip-address={self.head.address}", f"--port={PORT}", *FEW)
        for machine in self.machines:  # one after the other: each has to be quick
            await self._start(machine, 1, f"--address={self.address}")

    async def end(self) -> None:
        """Whatever is left on the head and on the machines."""
        for machine in (self.head, *self.machines):
            await asyncio.to_thread(machine.end_all)
        if self.service:
            await asyncio.wait_for(self.service.communicate(), PATIENCE)

    async def _start(self, machine: Machine, cpus: int, *words: str) -> str:
        own = (f"--num-cpus={cpus}", f"--object-store-memory={MEMORY}", f"--temp-dir={machine.temporary}")
        for _ in range(ATTEMPTS - 1):  # Ray gives a machine 30 s to come up, and a busy one takes longer
            with contextlib.suppress(CommandError):
                return await self.run(machine, *RAY, *own, *words)
            await asyncio.to_thread(machine.end_all)
        return await self.run(machine, *RAY, *own, *words)

    async def run(self, machine: Machine, *command: str, stdin: bytes = b"") -> str:
        process = await asyncio.create_subprocess_exec(
            *machine.inside(*command), env=self.environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        try:
            said, errors = await asyncio.wait_for(process.communicate(stdin), PATIENCE)
        except TimeoutError:
            process.kill()
            raise
        if process.returncode:
            raise CommandError(f"{machine.name}: {' '.join(command)}: {errors.decode()[-2000:]}")
        return said.decode()

    @property
    def environment(self) -> dict[str, str]:
        return {**environment(), **PATIENT, **self.ray}

    async def serve(self, *settings: str) -> None:
        """One life of the service; `service` ends with it."""
        command = command_line("polar", "serve", "--ray", self.address, "--directory", str(self.network.place))
        engine = ("--engine", self.engine, "--model", "tiny", "--tokenizer", str(self.tokenizer))
        own = ("--renderer-options", '{"enable_thinking": false}', "rollouts.run_workers=2")
        more = ("ray={watch: 0.3, call_timeout: 5}", "control.max_attempts=5", *settings)
        with (self.shared / "service.log").open("ab") as errors:
            self.service = await asyncio.create_subprocess_exec(
                *self.head.inside(*command, *engine, *own, *more),
                env=self.environment, stdin=DEVNULL, stdout=PIPE, stderr=errors,
            )  # fmt: skip
        assert self.service.stdout
        line = await asyncio.wait_for(self.service.stdout.readline(), PATIENCE)
        assert line.startswith(b"rollout service on"), (line, (self.shared / "service.log").read_text()[-3000:])

    async def submit(self, name: str, samples: int, backend: str = "local", before: str = "") -> None:
        """A task whose agent does `before` first, then asks `ANSWERS` times."""
        work = task(
            evaluate=f"test $(wc -l < seen.txt) = {ANSWERS}",
            task_id=name,
            num_samples=samples,
            backend=backend,
            timeout_seconds=200.0,
        )
        work = work.model_copy(update={"agent": AgentSpec(harness="shell", settings={"command": before + HARNESS})})
        await self.run(
            self.head, *command_line("polar", "submit", "-"), stdin=orjson.dumps(work.model_dump(mode="json"))
        )

    # What there is

    def sessions(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.record.sessions() if one["task_id"] == name]

    def count(self, name: str, status: str) -> int:
        """Of the attempts that count."""
        return sum(one["current"] and one["status"] == status for one in self.sessions(name))

    def ran(self, name: str, *, lost: bool) -> set[str]:
        """The attempts that were given up, or all others."""
        return {one["session_id"] for one in self.sessions(name) if bool(one["lost"]) is lost}

    def told(self, kind: str) -> set[str]:
        """The sessions of which that was told."""
        return {one["session_id"] for one in self.record.rows("select * from events") if one["kind"] == kind}

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Those that are ready, by the address of their machine."""
        found = [one for one in self.record.rows("select * from nodes") if one["state"] == "ready"]
        return {orjson.loads(one["metadata"])["address"]: one for one in found}


@contextlib.asynccontextmanager
async def site(
    directory: Path, tokenizer: Path, machines: int, ray: Mapping[str, str] | None = None
) -> AsyncIterator[Site]:
    """An engine, a head, and that many machines more, each at an address of its own."""
    place, shared = directory / "place", directory / "shared"
    place.mkdir()
    shared.mkdir()
    async with contextlib.AsyncExitStack() as stack:
        network = stack.enter_context(Network(place, directory / "disks"))
        made = Site(network, tokenizer, shared, ray or {})
        for name in ("engine", "head", *(f"machine-{number}" for number in range(1, machines + 1))):
            await asyncio.to_thread(network.add, name)
        await asyncio.to_thread(network.tell)
        away = network.machines[0]
        command = engine_command(tokenizer, "a", made.log, host=away.address)
        _, made.engine = await stack.enter_async_context(started(away.inside(*command)))
        await made.start_cluster()
        try:
            yield made
        finally:
            await made.end()


async def until(true: Callable[[], object], within: float = PATIENCE) -> None:
    async with asyncio.timeout(within):
        while not true():  # noqa: ASYNC110 - what it waits for is in other processes
            await asyncio.sleep(0.1)
