# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE, Marked, Stand, stand, task, until


def samples(bench: Stand) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(bench.gateway.metrics.text().decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


async def test_who_is_where_and_who_waits(engine: FakeEngine, tmp_path: Path, marked: Marked) -> None:
    shape = {"init_workers": 1, "ready_buffer": 1, "run_workers": 1, "postrun_workers": 1}
    async with stand(engine, tmp_path, **shape) as bench:  # type: ignore[arg-type] # settings, all of them
        running = asyncio.create_task(bench.service.run(task(ASK_ONCE + marked.command, num_samples=6)))
        await until(lambda: bench.service.pools.run.waiting == 1)
        await until(lambda: bench.service.pools.rooms.waiting == 1)
        now = samples(bench)
        bench.service.cancel("task")
        await running
        later = samples(bench)
    in_stage = {stage: now["polar_stage_sessions", stage] for stage in ("queued", "init", "ready", "running")}
    assert in_stage == {"queued": 4, "init": 0, "ready": 1, "running": 1}
    assert [now[f"polar_pool_{name}", "run"] for name in ("size", "used", "waiting")] == [1, 1, 1]
    assert [now[f"polar_pool_{name}", "rooms"] for name in ("size", "used", "waiting")] == [2, 2, 1]
    assert [now[f"polar_pool_{name}", "init"] for name in ("size", "used", "waiting")] == [1, 1, 3]
    assert not any(value for name, value in later.items() if name[0] in ("polar_stage_sessions", "polar_pool_used"))


async def test_every_part_of_a_session_is_timed_once(bench: Stand) -> None:
    group = await bench.service.run(task(num_samples=2))
    found = samples(bench)
    for part in group.sessions[0].timing:
        assert found["polar_stage_seconds_count", part] == 2, part
        assert found["polar_stage_seconds_sum", part] >= 0
    assert len(group.sessions[0].timing) >= 10
