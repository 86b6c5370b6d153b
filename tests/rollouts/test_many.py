# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A thousand sessions that wait cost memory for a thousand sessions that wait, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from pathlib import Path

import psutil

from nemo_gym_polar.rollouts.pool import Usage
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE, Marked, places, stand, task, until

WAITING = 1000
EACH = 12_000  # bytes


async def test_a_thousand_sessions_wait(engine: FakeEngine, tmp_path: Path, marked: Marked) -> None:
    shape = {"init_workers": 2, "ready_buffer": 1, "run_workers": 2, "postrun_workers": 1}
    async with stand(engine, tmp_path, **shape) as bench:  # type: ignore[arg-type] # settings, all of them
        await bench.service.run(task())
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        request = task(ASK_ONCE + marked.command, num_samples=WAITING, timeout_seconds=600)
        running = asyncio.create_task(bench.service.run(request))
        pools = bench.service.pools
        await until(lambda: pools.gauges[Stage.READY] == 1 and pools.usage["rooms"] == Usage(3, 3, 2), 180)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (after - before) / WAITING < EACH
        assert bench.service.pools.gauges[Stage.QUEUED] == WAITING - 3
        assert bench.service.pools.usage["init"] == Usage(2, 2, WAITING - 5)  # both wait for a room
        assert pools.run.used == 2
        assert len(sandboxes()) == 3
        assert len(bench.gateway) == 3
        assert timers() < 50  # nobody looks again and again whether it is time
        assert bench.service.cancel("task") == WAITING
        group = await asyncio.wait_for(running, 120)
    assert {session.status for session in group.sessions} == {SessionStatus.CANCELLED}
    assert bench.peaks[Stage.INIT] <= 2
    assert bench.service.pools.usage["init"] == Usage(2, 0, 0)
    assert sandboxes() == []


async def test_priority_goes_first_in_the_queue(engine: FakeEngine, tmp_path: Path) -> None:
    shape = {"init_workers": 1, "ready_buffer": 0, "run_workers": 1, "postrun_workers": 1}
    async with stand(engine, tmp_path, **shape) as bench:  # type: ignore[arg-type] # settings, all of them
        order: list[str] = []

        async def run(name: str, priority: int) -> None:
            await bench.service.run(task(task_id=name, dispatch_priority=priority))
            order.append(name)

        pools, tasks = bench.service.pools, []
        async with places(pools.rooms, 1):
            for name, priority in (("first", 0), ("low", 0), ("high", 50), ("late", 0), ("urgent", 100)):
                tasks.append(asyncio.create_task(run(name, priority)))
                await until(lambda: pools.init.used + pools.init.waiting == len(tasks))
        await asyncio.gather(*tasks)
    assert order == ["first", "urgent", "high", "low", "late"]  # «first» had the place in INIT before the others came


def sandboxes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == "bwrap"]


def timers() -> int:
    """How many timers the loop has."""
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined] # the standard loop's own
