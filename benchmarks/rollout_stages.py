# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How busy the stages keep an engine: sessions per second and the engine's taken places, measured and modelled.

    python benchmarks/rollout_stages.py [--sessions N] [--places N] [--scale S] [--many N] [--json]

The service, the gateway and the journals are real; the engine, the sandboxes and the agents take simulated time with
long tails (`stage_costs.py`). One engine of `--places`, and as many sessions running at most. Side by side:

- `sequential`: one session after another
- `pool`: as many workers as places; each takes a session from its sandbox's start to its score
- `stages`: pools of their own for INIT, RUNNING and POSTRUN, without a READY buffer
- `ready`: the same with a READY buffer
- `prewarm`: and the evaluator's own sandbox is made while the agent runs

In the first four the evaluator's sandbox is made when it is needed. `model` is what a discrete-event simulation of the
same pools says (`stage_model.py`); it then goes on to as many machines as nobody here has. `--many` runs so many
sessions at once, for memory and CPU per session.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import aiohttp
from machine import measured
from processes import child
from rows import shown
from simulated_sandbox import AGENT, NAME, World
from stage_costs import Costs
from stage_model import Plan, simulate

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, Server, serve
from nemo_gym_polar.policy.corpus import seed_corpus
from nemo_gym_polar.policy.tokenizer import make_tokenizer, save_tokenizer
from nemo_gym_polar.rollouts.plan import make_plan
from nemo_gym_polar.rollouts.service import RolloutService
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.sources import GatewaySessions
from nemo_gym_polar.rollouts.task import AgentSpec, EvaluatorSpec, RuntimeSpec, SessionStatus, TaskRequest


@dataclass(frozen=True, slots=True)
class Outcome:
    """`busy` is the taken share of the engine's places over the whole run."""

    plan: str
    sessions: int
    calls: int
    seconds: float
    sessions_per_second: float
    busy: float
    cpu_ms_per_session: float
    peak_mb: float
    model_sessions_per_second: float
    model_busy: float


def plans(places: int) -> dict[str, Plan]:
    """The pools of each contender. The evaluator's sandboxes have places of their own only where they are prewarmed."""
    base = Plan(running=places, init=max(1, places // 2), ready=0, postrun=places, prewarm=0, at_once=None)
    return {
        "sequential": replace(base, at_once=1),
        "pool": replace(base, at_once=places, init=places),
        "stages": base,
        "ready": replace(base, ready=max(1, places // 2)),
        "prewarm": replace(base, ready=max(1, places // 2), prewarm=max(1, places // 2)),
    }


@asynccontextmanager
async def standing(root: Path, engine: str) -> AsyncIterator[tuple[Gateway, Server]]:
    fields = EngineSettings(urls=(engine,), model="m", tokenizer=str(root), renderer_options={"enable_thinking": False})
    (root / "journals").mkdir(exist_ok=True)
    settings = GatewaySettings(journals=root / "journals", commit_window=0.002)
    async with Gateway(make_engine(fields), settings) as gateway, serve(gateway) as server:
        yield gateway, server


def service(gateway: Gateway, server: Server, root: Path, plan: Plan) -> RolloutService:
    settings = RolloutSettings(
        directory=root,
        init_workers=plan.init,
        ready_buffer=plan.ready,
        run_workers=plan.running,
        postrun_workers=plan.postrun,
        prewarm_workers=max(1, plan.prewarm),
    )
    return RolloutService.over(gateway, server, settings)


async def run(plan: Plan, sessions: int, world: World, stand: tuple[Gateway, Server], root: Path) -> None:
    """All sessions through the real stages; `at_once` is the number of workers of a plain pool."""
    request = TaskRequest(
        task_id="bench",
        instruction="Fix the failing test.",
        timeout_seconds=3600,
        agent=AgentSpec(harness=AGENT),
        runtime=RuntimeSpec(backend=NAME),
        evaluator=EvaluatorSpec(config={"command": "true"}, refresh_runtime=plan.prewarm > 0),
    )
    workers = asyncio.Semaphore(plan.at_once or sessions)
    async with service(*stand, root, plan) as stages:
        source = GatewaySessions(*stand, stages.settings)
        made = make_plan(request)

        async def one(sample: int) -> SessionStatus:
            async with workers:
                return (await stages.run_one(made, sample, source, lambda stage: None)).status

        ended = await asyncio.gather(*map(one, range(sessions)))
    assert set(ended) == {SessionStatus.COMPLETED}, ended


async def measure(name: str, plan: Plan, sessions: int, costs: Costs, places: int) -> Outcome:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        save_tokenizer(make_tokenizer(seed_corpus(), vocab_size=1024), root)
        tail = costs.generation
        argv = (str(root), str(places), str(tail.median), str(tail.sigma), str(costs.scale))
        with child("benchmarks/slow_engine.py", *argv) as engine:
            connector = aiohttp.TCPConnector(limit=0)
            async with (
                standing(root, engine.first_line) as stand,
                aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(None)) as client,
            ):
                world = World(costs, client, late=not plan.prewarm)
                began, cpu = time.monotonic(), time.process_time()
                await run(plan, sessions, world, stand, root)
                seconds, used = time.monotonic() - began, time.process_time() - cpu
                async with client.get(engine.first_line + "/busy") as reply:
                    busy = float(await reply.json()) / (places * seconds)
    modelled = [simulate(plan, sessions, costs, places, seed=seed) for seed in range(5)]
    return Outcome(
        plan=name,
        sessions=sessions,
        calls=world.calls,
        seconds=seconds,
        sessions_per_second=sessions / seconds,
        busy=busy,
        cpu_ms_per_session=1e3 * used / sessions,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        model_sessions_per_second=fmean(one.sessions_per_second for one in modelled),
        model_busy=fmean(one.busy for one in modelled),
    )


def many(sessions: int, costs: Costs) -> Outcome:
    """All at once: every session has a place, and so has every call."""
    plan = Plan(running=sessions, init=sessions, ready=0, postrun=sessions, prewarm=0, at_once=None)
    return asyncio.run(measure(f"{sessions} at once", plan, sessions, costs, sessions))


def side_by_side(sessions: int, costs: Costs, places: int) -> list[Outcome]:
    """Each plan by itself. One session after another takes so long that fewer must do."""
    outcomes = []
    for name, plan in plans(places).items():
        count = max(1, sessions // places) if plan.at_once == 1 else sessions
        outcomes.append(asyncio.run(measure(name, plan, count, costs, places)))
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=96)
    parser.add_argument("--places", type=int, default=12)
    parser.add_argument("--scale", type=float, default=0.05, help="of all simulated times")
    parser.add_argument("--many", type=int, default=0, help="measure so many sessions at once, and nothing else")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    costs = replace(Costs(), scale=options.scale)
    with measured() as here:
        chosen = [many(options.many, costs)] if options.many else side_by_side(options.sessions, costs, options.places)
    rows = [asdict(outcome) for outcome in chosen]
    found = {"machine": here, "places": options.many or options.places, "costs": asdict(costs), "plans": rows}
    print(shown(found, rows, as_json=options.json))


if __name__ == "__main__":
    main()
