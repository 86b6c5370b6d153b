# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.factory import TokensMode, make_engine
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeBusyError, NodeError, Report
from nemo_gym_polar.rollouts.nodes.local import LocalNode
from nemo_gym_polar.rollouts.nodes.pressure import EnginePressure
from nemo_gym_polar.rollouts.task import AgentSpec, SessionStatus
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import engine_settings
from tests.support.rollouts import ASK_ONCE, Marked, Stand, places, task


def local(bench: Stand) -> LocalNode:
    return LocalNode("local", bench.gateway, bench.server, bench.service.settings)


def trace_files(directory: Path) -> list[Path]:
    return list(directory.glob("traces/*"))


async def last(node: LocalNode, session_id: str, *wanted: SessionStatus) -> Report:
    """The session's report once it has one of these statuses."""
    cursor = 0
    async with asyncio.timeout(60):
        while True:
            for report in await node.reports(cursor, 5.0):
                cursor = report.cursor
                if report.session_id == session_id and (report.status in wanted or report.status.final):
                    return report


async def test_a_session_runs_under_its_given_id_and_is_kept_until_acknowledged(bench: Stand) -> None:
    node = local(bench)
    await node.start(Assignment("one", task(), sample=3))
    report = await last(node, "one", SessionStatus.COMPLETED)
    assert report.result is not None
    assert (report.result.session_id, report.result.sample, report.result.reward) == ("one", 3, 1.0)
    assert recover(bench.directory / "journals" / "one.journal").forest.session_id == "one"
    assert [again.result for again in await node.reports(0, 0.0)] == [report.result]
    await node.acknowledge(["one"])
    assert await node.reports(0, 0.0) == []


async def test_the_same_start_again_runs_nothing_again(bench: Stand) -> None:
    node = local(bench)
    work = Assignment("one", task(), sample=0)
    for _ in range(2):
        await node.start(work)
    await last(node, "one", SessionStatus.COMPLETED)
    await node.acknowledge(["one"])
    await node.start(work)  # came late
    assert (await node.load()).sessions == 0
    assert len(bench.journals) == 1


async def test_a_node_whose_disk_is_full_takes_no_session(bench: Stand) -> None:
    settings = bench.service.settings.model_copy(update={"min_free_disk": 1 << 62})
    node = LocalNode("local", bench.gateway, bench.server, settings)
    assert (await node.load()).free == 0
    with pytest.raises(NodeBusyError):
        await node.start(Assignment("one", task(), sample=0))
    assert await node.reports(0, 0.0) == []


async def test_stages_are_told_in_order(bench: Stand) -> None:
    node = local(bench)
    seen: list[SessionStatus] = []
    await node.start(Assignment("one", task(), sample=0))
    cursor = 0
    async with asyncio.timeout(60):
        while not seen or not seen[-1].final:
            for report in await node.reports(cursor, 5.0):
                cursor = report.cursor
                seen.append(report.status)
    order = list(SessionStatus)
    assert seen == sorted(seen, key=order.index)
    assert SessionStatus.RUNNING in seen


async def test_cancel_ends_a_running_session_with_all_that_it_started(bench: Stand, marked: Marked) -> None:
    node = local(bench)
    await node.start(Assignment("one", task(ASK_ONCE + marked.command), sample=0))
    await last(node, "one", SessionStatus.RUNNING)
    assert await marked.becomes(True)
    await node.cancel("one")
    report = await last(node, "one", SessionStatus.CANCELLED)
    assert report.status is SessionStatus.CANCELLED
    assert report.result is not None and len(report.result.traces) == 1
    assert await marked.becomes(False)
    assert len(bench.gateway) == 0


async def test_cancel_right_after_start_still_gives_a_result(bench: Stand) -> None:
    node = local(bench)
    await node.start(Assignment("one", task(), sample=0))
    await node.cancel("one")
    await node.cancel("nobody")
    report = await last(node, "one", SessionStatus.CANCELLED)
    assert report.result is not None
    assert (report.result.session_id, report.result.status) == ("one", SessionStatus.CANCELLED)


async def test_cancel_in_the_moment_in_which_the_deadline_comes(bench: Stand) -> None:
    """The stage that is out of time is being cancelled already; the session must not go on to be scored."""
    node, loop = local(bench), asyncio.get_running_loop()
    async with places(node.service.pools.run, bench.service.settings.run_workers):
        asked = loop.time()
        await node.start(Assignment("one", task(timeout_seconds=7.0), sample=0))
        await last(node, "one", SessionStatus.READY)
        late = loop.time() + 7.0  # after the deadline, which counts from INIT on
        loop.call_at(late, lambda: asyncio.eager_task_factory(loop, node.cancel("one")))
        loop.call_at(asked + 4.5, lambda: time.sleep(max(0.0, late + 0.01 - loop.time())))  # both are due then
        report = await last(node, "one", SessionStatus.CANCELLED)
    assert report.status is SessionStatus.CANCELLED


async def test_a_task_that_is_wrong_is_refused_and_not_taken_on(bench: Stand) -> None:
    node = local(bench)
    wrong = task().model_copy(update={"agent": AgentSpec(harness="nope")})
    with pytest.raises(RolloutError, match="nope"):
        await node.start(Assignment("one", wrong, sample=0))
    assert await node.reports(0, 0.0) == []


async def test_a_full_or_draining_node_takes_nothing(bench: Stand, marked: Marked) -> None:
    node = local(bench)
    work = task(marked.command)
    for number in range(node.capacity):
        await node.start(Assignment(f"s{number}", work, sample=number))
    assert (await node.load()).free == 0
    with pytest.raises(NodeBusyError):
        await node.start(Assignment("more", work, sample=99))
    await node.close()
    results = {report.session_id: report.status for report in await node.reports(0, 0.0)}
    assert results == {f"s{number}": SessionStatus.CANCELLED for number in range(node.capacity)}
    with pytest.raises(NodeBusyError):
        await node.start(Assignment("more", work, sample=99))


async def test_nothing_to_pause_is_said(bench: Stand) -> None:
    with pytest.raises(NodeError, match="pause"):
        await local(bench).pause(1.0)


async def test_results_are_not_written_by_the_node(bench: Stand) -> None:
    node = local(bench)
    await node.start(Assignment("one", task(), sample=0))
    await last(node, "one", SessionStatus.COMPLETED)
    assert trace_files(bench.directory) == []


async def test_how_full_the_engine_is_is_in_the_load(bench: Stand) -> None:
    assert (await local(bench).load()).pressure is None  # it does not tell
    bench.engine.page = 'vllm:kv_cache_usage_perc{model_name="m"} 0.75\nvllm:num_requests_waiting{model_name="m"} 0\n'
    node = local(bench)
    assert (await node.load()).pressure == 0.75


async def test_an_engine_that_falls_silent_is_as_full_as_it_was(bench: Stand) -> None:
    engine = bench.gateway.mode.engine
    bench.engine.page = "vllm:kv_cache_usage_perc 0.75\n"
    pressure, forgetful = EnginePressure(engine, fresh=0.0), EnginePressure(engine, fresh=0.0, believed=0.0)
    assert [await pressure.now(), await forgetful.now()] == [0.75, 0.75]
    bench.engine.page = ""
    assert [await pressure.now(), await forgetful.now()] == [0.75, None]
    bench.engine.page = "vllm:kv_cache_usage_perc 0.5\n"
    assert await pressure.now() == 0.5


async def test_an_engine_that_can_t_be_reached_is_full(engine: FakeEngine) -> None:
    nowhere = engine_settings(engine).model_copy(update={"urls": ("http://127.0.0.1:9",)})
    mode = make_engine(nowhere)
    assert isinstance(mode, TokensMode)
    pressure = EnginePressure(mode.engine, fresh=0.0)
    assert await pressure.now() is None  # nobody has tried yet
    with pytest.raises(EngineError, match="No engine answered"):
        await mode.engine.sample(np.array([1], np.int32), Sampling(), session="s")
    assert await pressure.now() == 1.0
    await mode.engine.close()
