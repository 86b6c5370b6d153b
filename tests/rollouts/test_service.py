# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Groups, pools, cancellation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.forest.builders import Build, Options
from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.pool import Usage
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.rollouts.task import AgentSpec, BuilderSpec, EvaluatorSpec, RuntimeSpec, SessionStatus
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK, Stand, kill_sandbox, places, stand, task, until


async def test_a_group(bench: Stand) -> None:
    group = await bench.service.run(task(num_samples=5))
    assert [session.sample for session in group.sessions] == [0, 1, 2, 3, 4]
    assert {session.status for session in group.sessions} == {SessionStatus.COMPLETED}
    assert len({session.session_id for session in group.sessions}) == 5
    assert group.first_prompt_mismatches == ()


async def test_pools_are_bounded_and_shared_by_groups(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, init_workers=1, ready_buffer=1, run_workers=2, postrun_workers=1) as bench:
        held: list[int] = []
        bench.watch = lambda now: held.append(now[Stage.READY] + now[Stage.RUNNING] + now[Stage.FINISHED])
        async with places(bench.service.pools.run, 2):
            groups = asyncio.gather(*(bench.service.run(task(task_id=f"t{n}", num_samples=3)) for n in range(3)))
            await until(lambda: bench.service.pools.gauges[Stage.READY] == 3)
        ended = await groups
    assert {session.status for group in ended for session in group.sessions} == {SessionStatus.COMPLETED}
    assert (bench.peaks[Stage.INIT], bench.peaks[Stage.RUNNING], bench.peaks[Stage.POSTRUN]) == (1, 2, 1)
    assert max(held) == 3
    assert not any(bench.service.pools.gauges.values())


async def test_a_warm_sandbox_is_ready_before_a_slot_is_free(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, ready_buffer=1, run_workers=1) as bench:
        async with places(bench.service.pools.run, 1):
            running = asyncio.create_task(bench.service.run(task()))
            await until(lambda: bench.service.pools.gauges[Stage.READY] == 1)
            (run,) = bench.service._running.values()
            assert run.runtime and await run.runtime.alive()
            assert not engine.served
        (session,) = (await running).sessions
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)


async def test_a_deadline_that_comes_before_a_slot_is_free_ends_the_session(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, ready_buffer=1, run_workers=1) as bench:
        async with places(bench.service.pools.run, 1):
            running = asyncio.create_task(bench.service.run(task(timeout_seconds=4.0)))
            await until(running.done)
            assert bench.service.pools.usage["rooms"] == Usage(2, 0, 0)
        (session,) = running.result().sessions
        assert (session.status, session.error) == (SessionStatus.TIMEOUT, "the session's 4 s ended in ready")
        assert not engine.served
        assert bench.service.pools.usage["run"] == Usage(1, 0, 0)


async def test_a_sandbox_that_died_while_it_was_ready_is_replaced(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, ready_buffer=1, run_workers=1) as bench:
        async with places(bench.service.pools.run, 1):
            running = asyncio.create_task(bench.service.run(task(files={"a": "x"}, evaluate="test -e a")))
            await until(lambda: bench.service.pools.gauges[Stage.READY] == 1)
            (run,) = bench.service._running.values()
            kill_sandbox(run.runtime)
        (session,) = (await running).sessions
    assert (session.reward, session.metadata["sandbox_restarts"]) == (1.0, 1)


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


def refuse(store: TurnStore, options: Options) -> Build:
    raise BuilderError("not this one")


async def test_a_builder_that_refuses_a_session_does_not_end_its_group(bench: Stand) -> None:
    builder = BuilderSpec(strategy=f"{__name__}:refuse")
    group = await bench.service.run(task(num_samples=2).model_copy(update={"builder": builder}))
    assert [(session.status, session.error) for session in group.sessions] == [
        (SessionStatus.ERROR, "not this one")
    ] * 2
    assert not any(bench.service.pools.gauges.values())
