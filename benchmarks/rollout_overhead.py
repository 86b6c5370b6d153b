# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a session costs beside its agent: sandbox, stages, gateway, scoring; and how many run per second.

    python benchmarks/rollout_overhead.py [--sessions N] [--workers N] [--json]

Three measurements in one run, all with an engine that answers at once, so that only our own costs are left:

- `sandbox`: start, one command, stop
- `pi alone`: the real Pi, two turns through the gateway, without sandbox, stages or scoring
- `session`: the same as sessions of the rollout service, in bubblewrap, scored by a command

CPU counts this process (gateway and service) and all its children (bwrap, supervisor, Pi), not the engine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from processes import child

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, Server, serve
from nemo_gym_polar.harnesses.base import HarnessContext
from nemo_gym_polar.harnesses.pi import PiHarness
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.tokenizer import make_tokenizer, save_tokenizer
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.task import EvaluatorSpec, SessionStatus, TaskRequest
from nemo_gym_polar.runtimes.base import Runtime
from nemo_gym_polar.runtimes.bubblewrap import BubblewrapRuntime
from nemo_gym_polar.runtimes.registry import GatewayAddress, make_runtime

INSTRUCTION = "Create hello.txt."


@dataclass(slots=True)
class Cost:
    """Seconds of wall time and of CPU for a number of runs."""

    runs: int
    wall: float = 0.0
    cpu: float = 0.0

    def row(self, name: str) -> dict[str, float | str]:
        per_run = {"cpu_ms": 1e3 * self.cpu / self.runs, "wall_ms": 1e3 * self.wall / self.runs}
        return {"what": name, **{key: round(value, 1) for key, value in per_run.items()}}


@contextmanager
def measured(runs: int) -> Iterator[Cost]:
    cost, cpu, wall = Cost(runs), cpu_seconds(), time.perf_counter()
    yield cost
    cost.wall, cost.cpu = time.perf_counter() - wall, cpu_seconds() - cpu


def cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


async def sandboxes(runs: int) -> tuple[Cost, float]:
    """Cost of whole lives, and the median seconds of a start."""
    starts = []
    with measured(runs) as cost:
        for _ in range(runs):
            runtime, began = BubblewrapRuntime(gateway=None), time.perf_counter()
            await runtime.start()
            starts.append(time.perf_counter() - began)
            await runtime.run(["true"], timeout=10)
            await runtime.stop()
    return cost, statistics.median(starts)


async def pi_alone(gateway: Gateway, server: Server, runs: int) -> Cost:
    """One local runtime for all runs; its children's CPU counts once it has stopped."""
    harness = PiHarness({})
    with measured(runs) as cost:
        runtime = make_runtime("local", GatewayAddress(server.url), harness.mounts())
        await runtime.start()
        try:
            for _ in range(runs):
                await one_pi(gateway, server, harness, runtime)
        finally:
            await runtime.stop()
    return cost


async def one_pi(gateway: Gateway, server: Server, harness: PiHarness, runtime: Runtime) -> None:
    session = await gateway.open()
    url, home, workspace = server.url + session.path, runtime.home, runtime.workspace
    launch = harness.launch(
        HarnessContext(INSTRUCTION, url, session.secret, session.model, home, workspace, 32768, 512)
    )
    for path, data in launch.files.items():
        await runtime.write(path, data)
    ended = await runtime.run(launch.argv, env=launch.env, timeout=60)
    assert ended.code == 0, ended
    await gateway.finish(session.id)


async def sessions(gateway: Gateway, server: Server, directory: Path, runs: int, workers: int) -> Cost:
    settings = RolloutSettings(directory=directory, run_workers=workers, init_workers=workers)
    check = EvaluatorSpec(config={"command": "grep -qx hi hello.txt"})
    request = TaskRequest(task_id="bench", instruction=INSTRUCTION, num_samples=runs, evaluator=check)
    async with RolloutService.over(gateway, server, settings) as service:
        with measured(runs) as cost:
            group = await service.run(request)
    assert {session.status for session in group.sessions} == {SessionStatus.COMPLETED}, group.sessions[0].error
    assert all(session.reward == 1.0 for session in group.sessions)
    return cost


async def run(runs: int, workers: int) -> list[dict[str, float | str]]:
    PiHarness({}).install()
    with tempfile.TemporaryDirectory() as root:
        directory = Path(root)
        save_tokenizer(make_tokenizer(seed_corpus(), vocab_size=1024), directory)
        with child("benchmarks/two_turn_engine.py", root) as engine:
            settings = EngineSettings(
                urls=(engine.first_line,), model="m", tokenizer=root, renderer_options={"enable_thinking": False}
            )
            (directory / "journals").mkdir()
            async with (
                Gateway(make_engine(settings), GatewaySettings(journals=directory / "journals")) as gateway,
                serve(gateway, uds=directory / "gateway.sock") as server,
            ):
                await sandboxes(2)
                sandbox, start = await sandboxes(runs)
                alone = await pi_alone(gateway, server, runs)
                whole = await sessions(gateway, server, directory, runs, workers)
    return [
        {**sandbox.row("sandbox"), "start_ms": round(1e3 * start, 1)},
        alone.row("pi alone"),
        {
            **whole.row("session"),
            "sessions_per_second": round(runs / whole.wall, 2),
            "cpu_ms_beside_pi": round(1e3 * (whole.cpu - alone.cpu) / runs, 1),
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = asyncio.run(run(arguments.sessions, arguments.workers))
    for row in rows:
        print(json.dumps(row) if arguments.json else "  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
