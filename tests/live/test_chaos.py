# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A run of the rollout service on three machines in which nearly everything fails once; what was done is printed.

The truth is what the engines wrote down before they answered, and what the agents saw. Afterwards every sample has
ended once, every answer that an agent kept is trained on in one place, every journal is sound, and nothing is left
behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil
import pytest

from nemo_gym_polar.rollouts.callbacks.signature import HEADER, verify
from nemo_gym_polar.rollouts.client.client import RolloutClient
from nemo_gym_polar.rollouts.task import AgentSpec
from tests.support.callback_target import CallbackTarget
from tests.support.chaos_engine import chaos_engine
from tests.support.chaos_run import ANSWERS, HARNESS, Record
from tests.support.commands import command_line
from tests.support.ray_hosts import Hosts, ray_hosts
from tests.support.rollouts import task

TASKS, SAMPLES = 6, 6
KEY = "callback-key"
PATIENCE = 240.0  # seconds for the whole run on a busy machine
DISK = 64  # MiB


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that can be filled."""
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@dataclass(slots=True)
class Chaos:
    """One run: what is there to be broken, and what was broken."""

    hosts: Hosts
    tokenizer: Path
    directory: Path
    log: Path
    stack: contextlib.AsyncExitStack
    target: CallbackTarget
    errors: IO[bytes]
    engines: dict[str, tuple[Process, str]] = field(default_factory=dict)
    service: Process | None = None
    port: int = 0
    down: bool = True
    heard: list[int] = field(default_factory=list)
    injected: list[str] = field(default_factory=list)
    marker: str = field(default_factory=lambda: f"chaos-{uuid.uuid4().hex[:12]}")

    @property
    def record(self) -> Record:
        return Record(self.directory, self.log)

    def say(self, what: str) -> None:
        self.injected.append(f"{self.record.ended():2} of {TASKS * SAMPLES} ended: {what}")

    async def add_engine(self, name: str, port: int = 0) -> None:
        self.engines[name] = await self.stack.enter_async_context(chaos_engine(self.tokenizer, name, self.log, port))

    async def start_service(self) -> None:
        engines = [word for _, url in self.engines.values() for word in ("--engine", url)]
        self.service = await asyncio.create_subprocess_exec(
            *command_line("polar", "serve", "--ray", self.hosts.address, "--directory", str(self.directory)),
            *("--port", str(self.port), *engines, "--model", "tiny", "--tokenizer", str(self.tokenizer)),
            *("--renderer-options", '{"enable_thinking": false}'),
            *(f"ray={{namespace: {self.marker}, watch: 0.5}}", "control.max_attempts=9", "rollouts.run_workers=2"),
            *("rollouts.min_free_disk=1000000", "callbacks.first_delay=0.2", "callbacks.longest_delay=1.0"),
            env={**os.environ, "POLAR_CALLBACK_KEY": KEY},
            stdout=PIPE,
            stderr=self.errors,
        )
        assert self.service.stdout
        async with asyncio.timeout(90):
            line = await self.service.stdout.readline()
        assert line.startswith(b"rollout service on"), line

    async def submit(self) -> None:
        async with RolloutClient(f"http://127.0.0.1:{self.port}", attempts=8) as client:
            for number in range(TASKS):
                work = task(
                    evaluate=f"test $(wc -l < seen.txt) = {ANSWERS}",
                    task_id=f"task-{number}",
                    num_samples=SAMPLES,
                    backend=("bubblewrap", "local")[number % 2],
                    timeout_seconds=200.0,
                    callback_url=self.target.url,
                )
                agent = AgentSpec(harness="shell", settings={"command": HARNESS}, env={"CHAOS": self.marker})
                await client.submit(work.model_copy(update={"agent": agent}))

    async def until_ended(self, number: int) -> None:
        while self.record.ended() < number:  # noqa: ASYNC110 - by other processes
            await asyncio.sleep(0.1)

    # What is broken

    async def kill_node(self) -> None:
        while not (busy := self.record.busy_nodes()):  # noqa: ASYNC110 - other processes make them so
            await asyncio.sleep(0.05)
        node_id, pid = busy[0]
        self.say(f"node {node_id} is killed while it has sessions (SIGKILL for its actor)")
        os.kill(pid, signal.SIGKILL)

    async def kill_engine(self) -> None:
        process, url = self.engines.pop("b")
        self.say("one of two engine replicas is killed; it comes back at the same address")
        process.kill()
        await process.wait()
        await asyncio.sleep(2.0)
        await self.add_engine("b-again", int(url.rpartition(":")[2]))

    async def kill_service(self) -> None:
        assert self.service
        self.say("the service is killed and started again on the same store")
        self.service.kill()
        await self.service.communicate()
        await self.start_service()

    async def fill_disk(self) -> None:
        self.say("the disk of the service and of all nodes is full for 3 seconds")
        ballast = self.directory / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        await asyncio.sleep(3.0)
        ballast.unlink()

    async def kill_machine(self) -> None:
        self.say("a machine dies (SIGKILL for its raylet)")
        await asyncio.to_thread(self.hosts.kill, self.hosts.machines[-1])

    async def add_machine(self) -> None:
        self.say("another machine joins")
        await asyncio.to_thread(self.hosts.add)

    def answer(self, number: int) -> int:
        """The status of the callback with this number."""
        if self.down:
            return 503
        self.heard.append(number)
        return 204

    def unheard(self) -> set[str]:
        """Sessions that count and whose result has not been told."""
        calls = [self.target.calls[number] for number in self.heard if number < len(self.target.calls)]
        told = {call.json["session_id"] for call in calls if call.kind == "session.result"}
        return {one["session_id"] for one in self.record.sessions() if one["current"]} - told

    async def answer_callbacks(self) -> None:
        self.say(f"the callback target answers, after {len(self.target.calls)} calls that it refused with 503")
        self.down = False

    async def run(self) -> None:
        self.say("every 17th answer of an engine takes 3 seconds; the callback target refuses everything")
        steps = ((3, self.kill_node), (7, self.kill_engine), (11, self.fill_disk), (15, self.kill_machine))
        for number, step in (*steps, (18, self.kill_service), (22, self.answer_callbacks), (24, self.add_machine)):
            await self.until_ended(number)
            await step()
        await self.until_ended(TASKS * SAMPLES)

    async def stop(self) -> None:
        assert self.service
        self.service.send_signal(signal.SIGTERM)
        await asyncio.wait_for(self.service.communicate(), 60)
        assert self.service.returncode == 0


@contextlib.asynccontextmanager
async def chaos(hosts: Hosts, tokenizer: Path, directory: Path, log: Path) -> AsyncIterator[Chaos]:
    async with contextlib.AsyncExitStack() as stack:
        target = await stack.enter_async_context(CallbackTarget())
        errors = stack.enter_context((log.parent / "service.log").open("ab"))
        made = Chaos(hosts, tokenizer, directory, log, stack, target, errors, port=free_port())
        target.answer = made.answer
        for name in ("a", "b"):
            await made.add_engine(name)
        await made.start_service()
        try:
            yield made
        finally:
            if made.service and made.service.returncode is None:
                made.service.kill()
                await made.service.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port: int = door.getsockname()[1]
        return port


def left_behind(*marks: str) -> list[str]:
    """Processes that name one of the marks, other than this one."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "environ"]):
        told = " ".join(process.info["cmdline"] or ()) + repr(process.info["environ"])
        if process.info["pid"] != os.getpid() and any(mark in told for mark in marks):
            found.append(f"{process.info['pid']} {' '.join(process.info['cmdline'] or ())[:200]}")
    return found


async def becomes_empty(*marks: str) -> list[str]:
    for _ in range(300):
        if not (left := left_behind(*marks)):
            break
        await asyncio.sleep(0.2)
    return left


@pytest.mark.timeout(600)
async def test_everything_fails_once_and_every_session_ends_once_with_its_tokens(
    model_directory: Path, small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "sampled.jsonl"
    with ray_hosts(3) as hosts:
        async with chaos(hosts, model_directory, small_disk, log) as run:
            await run.submit()
            try:
                async with asyncio.timeout(PATIENCE):
                    await run.run()
                    while run.unheard():  # noqa: ASYNC110 - by another process
                        await asyncio.sleep(0.2)
            finally:
                with capsys.disabled():
                    print("", *run.injected, run.record.summary(), sep="\n  ")
            await run.stop()
        run.record.check(model_directory)
        calls = run.target.calls
        assert all(verify(KEY.encode(), call.body, call.headers[HEADER]) for call in calls)
        assert not await becomes_empty(run.marker), "agents and nodes end with the service"
    assert not await becomes_empty(str(hosts.directory)), "the cluster's processes end with it"
