# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Rollouts against the scripted engine, with harnesses written in shell: no Node, no start-up time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from nemo_gym_polar.engines.factory import make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, Server, serve
from nemo_gym_polar.rollouts.pool import Pool
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.stages import Gauges
from nemo_gym_polar.rollouts.task import AgentSpec, EvaluatorSpec, RuntimeSpec, TaskRequest
from nemo_gym_polar.runtimes.base import Runtime
from nemo_gym_polar.runtimes.inside.processes import descendants
from nemo_gym_polar.runtimes.supervised import SupervisedRuntime
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import engine_settings

# A harness's side of the wire in bash: `ask TEXT` is one model call, `post BODY` sends any bytes.
ASK = r"""
post() {
  local rest=${OPENAI_BASE_URL#http://}; local host=${rest%%/*}
  exec 3<>"/dev/tcp/${host%%:*}/${host##*:}"
  printf 'POST /%s/chat/completions HTTP/1.1\r\nHost: polar\r\nAuthorization: Bearer %s\r\nConnection: close\r\n' \
    "${rest#*/}" "$OPENAI_API_KEY" >&3
  printf 'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "$(printf %s "$1" | wc -c)" "$1" >&3
  cat <&3; exec 3>&-
}
ask() {
  post '{"model": "m", "messages": [{"role": "system", "content": "Be brief."},
         {"role": "user", "content": "'"$1"'"}]}'
}
"""
ASK_ONCE = ASK + 'ask "$POLAR_INSTRUCTION" | tail -n 1 > answer.json\n'

seconds = itertools.count(500_000)


class Marked:
    """A `sleep` that can be told from all others by its length."""

    def __init__(self) -> None:
        self.length = f"{next(seconds)}.{os.getpid()}"
        self.command = f"sleep {self.length}"

    def alive(self) -> bool:
        return any(self.length in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))

    async def becomes(self, alive: bool, within: float = 60.0) -> bool:
        deadline = time.monotonic() + within
        while self.alive() is not alive:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.02)
        return True


@contextlib.asynccontextmanager
async def places(pool: Pool, number: int) -> AsyncIterator[None]:
    """Take so many places of a pool, so that sessions stay before it."""
    for _ in range(number):
        await pool.acquire()
    try:
        yield
    finally:
        for _ in range(number):
            pool.release()


def kill_sandbox(runtime: Runtime | None) -> None:
    """All of its processes, as a machine out of memory would."""
    assert isinstance(runtime, SupervisedRuntime) and runtime.process
    pid = runtime.process.pid
    for one in (pid, *descendants(pid)):
        os.kill(one, signal.SIGKILL)


def use_up_its_time(bench: Stand) -> None:
    """Of the one harness that runs: what happens when its limit is reached, at a moment of the test's choice."""
    (run,) = bench.service._running.values()
    assert isinstance(run.runtime, SupervisedRuntime)
    run.runtime.connected.tell("kill")


async def until(met: Callable[[], bool], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not met():
        assert time.monotonic() < deadline, "the moment did not come"
        await asyncio.sleep(0.005)


@dataclass(slots=True)
class Stand:
    """Engine, gateway and service of one test. `peaks` has the most sessions that each stage ever held."""

    engine: FakeEngine
    gateway: Gateway
    server: Server
    service: RolloutService
    directory: Path
    peaks: Gauges = field(default_factory=dict)
    watch: Callable[[Gauges], None] | None = None

    def changed(self, gauges: Gauges) -> None:
        for stage, number in gauges.items():
            self.peaks[stage] = max(self.peaks.get(stage, 0), number)
        if self.watch:
            self.watch(gauges)

    @property
    def journals(self) -> list[Path]:
        return sorted((self.directory / "journals").glob("*.journal"))


@contextlib.asynccontextmanager
async def stand(
    engine: FakeEngine,
    directory: Path,
    *,
    context_tokens: int = 32768,
    renderer: str = "qwen3.5",
    thinking: bool = False,
    engine_fields: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Stand]:
    """`context_tokens` is what the model is said to read: agents with a long prompt need more.

    `engine_fields` are more settings of the engine, such as its kind.
    """
    mode = make_engine(engine_settings(engine, renderer=renderer, thinking=thinking, **engine_fields or {}))
    gateway_settings = GatewaySettings(journals=directory / "journals", header_grace=0.3, context_tokens=context_tokens)
    (directory / "journals").mkdir(parents=True, exist_ok=True)
    async with (
        Gateway(mode, gateway_settings) as gateway,
        serve(gateway, uds=directory / "gateway.sock") as server,
    ):
        made: list[Stand] = []
        rollouts = RolloutSettings(directory=directory, **settings)
        async with RolloutService.over(gateway, server, rollouts, lambda gauges: made[0].changed(gauges)) as service:
            made.append(Stand(engine, gateway, server, service, directory))
            yield made[0]


def task(
    command: str = ASK_ONCE,
    *,
    evaluate: str = "test -s answer.json",
    files: dict[str, str] | None = None,
    runtime: dict[str, Any] | None = None,
    backend: str = "bubblewrap",
    **fields: Any,
) -> TaskRequest:
    """A task whose harness is a shell script."""
    fields = {"task_id": "task", "instruction": "Say something.", "timeout_seconds": 60.0, **fields}
    return TaskRequest(
        agent=AgentSpec(harness="shell", settings={"command": command}),
        runtime=RuntimeSpec(backend=backend, files=files or {}, settings=runtime or {}),
        evaluator=EvaluatorSpec(config={"command": evaluate}),
        **fields,
    )
