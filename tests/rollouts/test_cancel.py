# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Cancelled at any moment, a session leaves nothing: no process, no sandbox, no connection, no place taken."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from nemo_gym_polar.rollouts.pool import Usage
from nemo_gym_polar.rollouts.sources import Collected, OpenSession, SessionSource
from nemo_gym_polar.rollouts.stages import Gauges, Stage
from nemo_gym_polar.rollouts.task import BuilderSpec, EvaluatorSpec, PrepareAction, SessionStatus, TaskRequest
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE, Marked, Stand, stand, task, until

SHAPE = {"init_workers": 1, "ready_buffer": 1, "run_workers": 1, "postrun_workers": 1, "prewarm_workers": 1}
Moment = Callable[[Stand, Marked], bool]
Act = Callable[[Stand, "asyncio.Task[Any]"], object]


def at(stage: Stage) -> Moment:
    return lambda bench, marked: bench.service.pools.gauges[stage] > 0


def scoring(bench: Stand, marked: Marked) -> bool:
    return bench.service.pools.gauges[Stage.POSTRUN] > 0 and marked.alive()


def prewarming(bench: Stand, marked: Marked) -> bool:
    return bench.service.pools.prewarm.used > 0


def waiting_to_prewarm(bench: Stand, marked: Marked) -> bool:
    return bench.service.pools.prewarm.waiting > 0


def building(bench: Stand, marked: Marked) -> bool:
    return isinstance(bench.service.source, SlowToFinish) and bench.service.source.finishing > 0


MOMENTS: Mapping[str, Moment] = {
    **{str(stage): at(stage) for stage in Stage},
    "preparing": lambda bench, marked: bench.service.pools.gauges[Stage.INIT] > 0 and marked.alive(),
    "prewarm queue": waiting_to_prewarm,
    "prewarm": prewarming,
    "prewarm preparing": lambda bench, marked: prewarming(bench, marked) and marked.alive(),
    "waiting for the prewarm": lambda bench, marked: (
        bench.service.pools.gauges[Stage.POSTRUN] > 0 and prewarming(bench, marked)
    ),
    "build": building,
    "evaluate": scoring,
}
ACTS: Mapping[str, Act] = {
    "task": lambda bench, running: bench.service.cancel("task"),
    "call": lambda bench, running: running.cancel(),
    "twice": lambda bench, running: (bench.service.cancel("task"), running.cancel(), running.cancel()),
}


CASES = [
    *((moment, act) for moment in MOMENTS for act in ("task", "call")),
    *((moment, "twice") for moment in ("init", "running", "prewarm preparing", "build", "evaluate")),
]


class SlowToFinish:
    """A source whose sessions take a moment to be built."""

    def __init__(self, source: SessionSource) -> None:
        self.source = source
        self.finishing = 0

    async def open(self, request: TaskRequest, sample: int, deadline: float) -> OpenSession:
        return await self.source.open(request, sample, deadline)

    async def finish(self, session_id: str, builder: BuilderSpec, outcome: Mapping[str, Any]) -> Collected:
        self.finishing += 1
        await asyncio.sleep(0.3)
        return await self.source.finish(session_id, builder, outcome)


def lingering(moment: str, marked: Marked) -> TaskRequest:
    """A task that stays where it is to be cancelled."""
    stay = {"finished": "evaluate", "postrun": "evaluate", "evaluate": "evaluate", "build": "", "preparing": "prepare"}
    stay |= {name: "eval_prepare" for name in MOMENTS if "prewarm" in name}
    where = stay.get(moment, "harness")
    harness = ASK_ONCE + (marked.command if where == "harness" or moment == "prewarm queue" else "")
    request = task(harness, evaluate=marked.command if where == "evaluate" else "true", num_samples=4)
    steps = {"prepare": (), "eval_prepare": ()} | {where: (PrepareAction(type="exec", command=marked.command),)}
    spec = {name: steps[name] for name in ("prepare", "eval_prepare")}
    config = request.evaluator.config
    evaluator = EvaluatorSpec(config=config, refresh_runtime=where == "eval_prepare")
    return request.model_copy(update={"runtime": request.runtime.model_copy(update=spec), "evaluator": evaluator})


@asynccontextmanager
async def watched(engine: FakeEngine, directory: Path, marked: Marked, **shape: Any) -> AsyncIterator[Stand]:
    """A stand that is seen to be as clean afterwards as after its first session."""
    async with stand(engine, directory, **shape) as bench:
        await bench.service.run(task())
        descriptors = psutil.Process().num_fds()
        yield bench
        assert len(bench.gateway) == 0
        assert not any(bench.service.pools.gauges.values())
        assert bench.service.pools.usage == {
            name: Usage(usage.size, 0, 0) for name, usage in bench.service.pools.usage.items()
        }
        assert not bench.service._running
        assert not marked.alive()
        assert sandboxes() == []
        await until(lambda: psutil.Process().num_fds() <= descriptors)  # a connection to the engine is kept for a while


def sandboxes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == "bwrap"]


@pytest.mark.parametrize(("moment", "act"), CASES)
async def test_nothing_is_left(engine: FakeEngine, tmp_path: Path, marked: Marked, moment: str, act: str) -> None:
    shape = SHAPE | ({"run_workers": 2} if moment == "prewarm queue" else {})
    async with watched(engine, tmp_path, marked, **shape) as bench:
        if moment == "build":
            bench.service.source = SlowToFinish(bench.service.source)
        running = asyncio.create_task(bench.service.run(lingering(moment, marked)))
        await until(lambda: MOMENTS[moment](bench, marked))
        ACTS[act](bench, running)
        await asyncio.wait([running], timeout=120)
        if act == "task":
            ended = {session.status for session in running.result().sessions}
            assert SessionStatus.CANCELLED in ended
        else:
            assert running.cancelled()


async def test_what_was_captured_is_built_but_not_trained_on(bench: Stand, marked: Marked) -> None:
    running = asyncio.create_task(bench.service.run(task(ASK_ONCE + marked.command)))
    assert await marked.becomes(alive=True)
    bench.service.cancel("task")
    (session,) = (await running).sessions
    assert (session.status, session.error) == (SessionStatus.CANCELLED, "cancelled")
    assert session.traces[0].trained_tokens == 0
    assert session.dropped == {"partial_run": len(bench.engine.served[0].sampled)}


async def test_a_session_that_is_being_written_stays_as_it_ended(bench: Stand) -> None:
    """The thread that would write the result is busy when the task is cancelled."""
    executor, written = ThreadPoolExecutor(1), threading.Event()
    asyncio.get_running_loop().set_default_executor(executor)

    def hold(gauges: Gauges) -> None:
        if gauges[Stage.POSTRUN]:
            executor.submit(written.wait, 120)

    bench.watch = hold
    running = asyncio.create_task(bench.service.run(task()))
    await until(lambda: bench.service.pools.gauges[Stage.POSTRUN] > 0)
    await until(lambda: not any(bench.service.pools.gauges.values()) and executor._work_queue.qsize() > 0)
    assert bench.service.cancel("task") == 1
    assert bench.service.cancel("task") == 1
    written.set()
    (session,) = (await running).sessions
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)
    assert (bench.directory / "sessions" / session.session_id / "result.json").exists()


async def test_a_task_that_is_cancelled_before_its_first_step_has_its_results(bench: Stand) -> None:
    await bench.service.run(task())
    running = asyncio.create_task(bench.service.run(task(num_samples=2)))
    while not bench.service._running:  # noqa: ASYNC110 - the very step in which they are made
        await asyncio.sleep(0)
    assert bench.service.cancel("task") == 2
    group = await running
    assert {session.status for session in group.sessions} == {SessionStatus.CANCELLED}


async def test_leaving_the_service_ends_everything(engine: FakeEngine, tmp_path: Path, marked: Marked) -> None:
    async with stand(engine, tmp_path) as bench:
        running = asyncio.create_task(bench.service.run(task(ASK_ONCE + marked.command)))
        assert await marked.becomes(alive=True)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not marked.alive()
    assert sandboxes() == []


@pytest.mark.parametrize("seed", range(4))
async def test_random_cancellations(engine: FakeEngine, tmp_path: Path, marked: Marked, seed: int) -> None:
    """Groups with and without sandboxes for their evaluators, cancelled at random; the others come through."""
    dice = random.Random(seed)
    shape = {name: dice.randint(1, 2) for name in SHAPE}
    async with watched(engine, tmp_path, marked, **shape) as bench:
        running = [asyncio.create_task(bench.service.run(some(dice, number))) for number in range(6)]
        for number in dice.sample(range(6), 4):
            await asyncio.sleep(dice.uniform(0.0, 0.5))
            if dice.random() < 0.5:
                running[number].cancel()
            else:
                bench.service.cancel(f"task-{number}")
        ended = await asyncio.wait_for(asyncio.gather(*running, return_exceptions=True), 240)
    groups = [group for group in ended if not isinstance(group, BaseException)]
    assert all(isinstance(group, asyncio.CancelledError) for group in ended if group not in groups)
    assert len(groups) >= 2
    statuses = {session.status for group in groups for session in group.sessions}
    assert statuses <= {SessionStatus.COMPLETED, SessionStatus.CANCELLED}
    untouched = [group for group in groups if all(session.reward == 1.0 for session in group.sessions)]
    assert len(untouched) >= 2


def some(dice: random.Random, number: int) -> TaskRequest:
    request = task(
        ASK_ONCE + f"sleep {dice.uniform(0, 0.3):.2f}",
        task_id=f"task-{number}",
        num_samples=3,
        dispatch_priority=dice.randint(0, 2),
        evaluate=f"sleep {dice.uniform(0, 0.2):.2f}",
    )
    evaluator = request.evaluator.model_copy(update={"refresh_runtime": dice.random() < 0.5})
    return request.model_copy(update={"evaluator": evaluator})
