# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Groups, pools, cancellation."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.stages import Gauges, Stage
from nemo_gym_polar.rollouts.task import AgentSpec, BuilderSpec, EvaluatorSpec, RuntimeSpec, SessionStatus
from nemo_gym_polar.runtimes.inside.processes import descendants
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK, ASK_ONCE, Stand, stand, task


async def test_a_group(bench: Stand) -> None:
    group = await bench.service.run(task(num_samples=5))
    assert [session.sample for session in group.sessions] == [0, 1, 2, 3, 4]
    assert {session.status for session in group.sessions} == {SessionStatus.COMPLETED}
    assert len({session.session_id for session in group.sessions}) == 5
    assert group.first_prompt_mismatches == ()


async def test_pools_are_bounded_and_shared_by_groups(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, init_workers=1, ready_buffer=1, run_workers=2, postrun_workers=1) as bench:
        slow = task(ASK_ONCE + "sleep 0.8", evaluate="sleep 0.05", num_samples=3)
        groups = await asyncio.gather(
            *(bench.service.run(slow.model_copy(update={"task_id": f"t{n}"})) for n in range(3))
        )
    assert {session.status for group in groups for session in group.sessions} == {SessionStatus.COMPLETED}
    assert (bench.peaks[Stage.INIT], bench.peaks[Stage.RUNNING], bench.peaks[Stage.POSTRUN]) == (1, 2, 1)
    held = bench.peaks[Stage.READY] + bench.peaks[Stage.RUNNING]
    assert bench.peaks[Stage.READY] >= 1
    assert held <= 3 + 1
    assert not any(bench.service.pools.gauges.values())


async def test_a_warm_sandbox_is_ready_before_a_slot_is_free(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, ready_buffer=1, run_workers=1) as bench:
        group = await bench.service.run(task(ASK_ONCE + "sleep 0.5", num_samples=2))
    waited = sorted(session.timing["ready"] for session in group.sessions)
    assert waited[0] < 0.2 < waited[1]


async def test_a_sandbox_that_died_while_it_was_ready_is_replaced(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, ready_buffer=1, run_workers=1) as bench:
        killed: list[int] = []

        def kill_the_waiting(gauges: Gauges) -> None:
            if gauges[Stage.READY] and gauges[Stage.RUNNING] and not killed:
                (run,) = [run for run in bench.service._running.values() if run.track.stage is Stage.READY]
                pid = run.runtime.process.pid  # type: ignore[union-attr]
                for one in (pid, *descendants(pid)):
                    os.kill(one, signal.SIGKILL)
                killed.append(pid)

        bench.watch = kill_the_waiting
        group = await bench.service.run(
            task(ASK_ONCE + "sleep 0.5", files={"a": "x"}, evaluate="test -e a", num_samples=2)
        )
    assert killed
    assert [session.reward for session in group.sessions] == [1.0, 1.0]
    assert sum(session.metadata.get("sandbox_restarts", 0) for session in group.sessions) == 1


async def test_differing_first_prompts_are_named(bench: Stand) -> None:
    leaky = ASK + 'n=$(head -c 4 /dev/urandom | od -An -tu4 | tr -d " "); ask "pid $n of it" > answer.json'
    group = await bench.service.run(task(leaky, num_samples=3))
    assert len(group.first_prompt_mismatches) == 2
    assert bench.service.first_prompt_mismatches == 2
    first = group.first_prompt_mismatches[0]
    assert first.own != first.theirs
    assert "[user] pid " in first.own
    assert first.session_id in str(first)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent": AgentSpec(harness="pie")}, "agent.harness='pie'"),
        ({"agent": AgentSpec(harness="pi", settings={"colour": 1})}, "agent.settings.colour=1"),
        ({"evaluator": EvaluatorSpec(strategy="vibes")}, "evaluator.strategy='vibes'"),
        ({"evaluator": EvaluatorSpec(config={})}, "evaluator.config.command"),
        ({"runtime": RuntimeSpec(backend="moon")}, "runtime.backend='moon'"),
        ({"runtime": RuntimeSpec(settings={"workspace_gb": 1})}, "runtime.settings.workspace_gb=1"),
        ({"builder": BuilderSpec(strategy="none")}, "no builder 'none'"),
        ({"builder": BuilderSpec(config={"x": 1})}, "unknown key 'x'"),
        ({"metadata": {"agent_timeout": "soon"}}, "metadata.agent_timeout='soon'"),
    ],
)
async def test_a_wrong_task_fails_at_once(bench: Stand, change: dict[str, Any], message: str) -> None:
    with pytest.raises(RolloutError, match=message):
        await bench.service.run(task(num_samples=3).model_copy(update=change))
    assert bench.journals == []


async def test_a_disk_that_takes_no_results_is_an_error(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path) as bench:
        (tmp_path / "traces").write_text("in the way")
        with pytest.raises(RolloutError, match="can't be written"):
            await bench.service.run(task())


async def test_a_disk_that_takes_no_journals_gives_results_that_say_so(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path) as bench:
        (tmp_path / "journals").rmdir()
        (tmp_path / "journals").write_text("in the way")
        group = await bench.service.run(task(num_samples=2))
    assert {session.status for session in group.sessions} == {SessionStatus.ERROR}
    assert "journal" in str(group.sessions[0].error)
