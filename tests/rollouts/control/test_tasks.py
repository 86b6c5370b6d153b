# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.control.errors import (
    BackPressureError,
    NoTracesError,
    TaskConflictError,
    UnknownSessionError,
    UnknownTaskError,
)
from nemo_gym_polar.rollouts.control.records import TaskState
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.task import EarlyStop, SessionStatus
from tests.support.control import a_task, control_plane, current, ended, until
from tests.support.simulated_node import SimulatedNode


async def test_a_task_runs_to_its_end(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        await control.add_node(node, kind="far", url="http://n1", metadata={"rack": 3})
        submitted = await control.submit(a_task(samples=2))
        assert (submitted.state, submitted.total_sessions) == (TaskState.RUNNING, 2)
        await until(lambda: len(node.running) == 2)
        first, second = node.started
        node.move(first.session_id, SessionStatus.RUNNING)
        node.end(first.session_id, reward=0.5)
        node.end(second.session_id, SessionStatus.ERROR)
        task = await ended(control)
        assert (task.state, task.ended_sessions, task.usable_sessions) == (TaskState.COMPLETED, 2, 1)
        one, other = await control.sessions("t")
        assert (one.status, one.reward, one.node_id) == (SessionStatus.COMPLETED, 0.5, "n1")
        assert one.result and one.result["session_id"] == one.session_id
        assert other.status is SessionStatus.ERROR
        await until(lambda: len(node.acknowledged) == 2)
        assert set(node.acknowledged) == {one.session_id, other.session_id}
        assert (tmp_path / "sessions" / one.session_id / "result.json").exists()
        with pytest.raises(NoTracesError):
            await control.traces(one.session_id)


async def test_a_task_without_a_usable_session_has_failed_and_says_why(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        node.refusal = RolloutError("runtime.backend='x' is unknown")
        await control.add_node(node, kind="far")
        await control.submit(a_task())
        task = await ended(control)
        assert (task.state, task.error) == (TaskState.FAILED, "sample 0: runtime.backend='x' is unknown")


async def test_the_same_task_again_is_the_same_record_and_other_content_a_conflict(
    store_url: str, tmp_path: Path
) -> None:
    async with control_plane(store_url, tmp_path) as control:
        first = await control.submit(a_task())
    async with control_plane(store_url, tmp_path) as control:
        assert await control.submit(a_task()) == first
        with pytest.raises(TaskConflictError, match="other content"):
            await control.submit(a_task(samples=2))
        assert len(await control.sessions("t")) == 1
        await control.cancel("t")
        with pytest.raises(TaskConflictError, match="cancelled"):
            await control.submit(a_task())


async def test_a_task_is_compared_as_it_is_stored(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        first = await control.submit(a_task(metadata={"pair": (1, 2)}))
        assert await control.submit(a_task(metadata={"pair": [1, 2]})) == first


async def test_many_submits_of_one_task_at_once_make_one(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        records = await asyncio.gather(*(control.submit(a_task(samples=3)) for _ in range(8)))
        assert all(record == records[0] for record in records)
        assert len(await control.sessions("t")) == 3


async def test_a_task_that_is_cancelled_before_it_comes_is_refused(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        with pytest.raises(UnknownTaskError):
            await control.cancel("t")
        gone = await control.cancel("t", register_if_missing=True)
        assert (gone.state, gone.request) == (TaskState.CANCELLED, None)
        with pytest.raises(TaskConflictError):
            await control.submit(a_task())
        assert await control.cancel("t") == gone


async def test_cancel_ends_what_waits_at_once_and_what_runs_at_its_node(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode(capacity=1)
        await control.add_node(node, kind="far")
        await control.submit(a_task(samples=3))
        await until(lambda: node.running)
        task = await control.cancel("t")
        assert task.state in (TaskState.CANCELLING, TaskState.CANCELLED)
        assert task.ended_sessions >= 2
        assert (await ended(control)).state is TaskState.CANCELLED
        assert {record.status for record in await control.sessions("t")} == {SessionStatus.CANCELLED}
        assert len(node.started) == 1


async def test_one_session_can_be_cancelled(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        await control.add_node(node, kind="far")
        await control.submit(a_task(samples=2))
        await until(lambda: len(node.running) == 2)
        await control.cancel_session(node.started[0].session_id)
        await until(lambda: len(node.running) == 1)
        node.end(node.started[1].session_id)
        task = await ended(control)
        assert (task.state, task.usable_sessions) == (TaskState.COMPLETED, 1)
        with pytest.raises(UnknownSessionError):
            await control.cancel_session("nobody")


async def test_too_many_waiting_sessions_push_back(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path, max_waiting=3, retry_after=7.0) as control:
        await control.submit(a_task(samples=2))
        with pytest.raises(BackPressureError) as raised:
            await control.submit(a_task("u", samples=2))
        assert raised.value.retry_after == 7.0
        assert (await control.submit(a_task(samples=2))).task_id == "t"  # a known one is no new load
        with pytest.raises(RolloutError, match="num_samples=4"):
            await control.submit(a_task("v", samples=4))
        await control.add_node(SimulatedNode(), kind="far")
        await until(lambda: not len(control.ledger.queue))
        await control.submit(a_task("u", samples=2))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"task_id": "a\0b"}, "printable"),
        ({"task_id": "x" * 600}, "512"),
        ({"metadata": {"n": 2**80}}, "JSON"),
        ({"metadata": {"n": object()}}, "JSON"),
    ],
)
async def test_what_no_store_can_hold_is_refused(store_url: str, tmp_path: Path, fields: dict, problem: str) -> None:
    async with control_plane(store_url, tmp_path) as control:
        with pytest.raises(RolloutError, match=problem):
            await control.submit(a_task(**fields))
        assert await control.tasks() == []


async def test_early_stop_of_the_fastest_takes_the_first_that_end(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode(capacity=3)
        await control.add_node(node, kind="far")
        await control.submit(a_task(samples=4, early_stop_min_usable_sessions=2))
        await until(lambda: len(node.running) == 3)
        by_sample = {work.sample: work.session_id for work in node.started}
        node.end(by_sample[2])
        await until(lambda: len(node.started) == 4)
        node.end(by_sample[1])
        task = await ended(control)
        assert (task.state, task.selected_samples) == (TaskState.COMPLETED, [1, 2])
        statuses = [record.status for record in await current(control)]
        assert statuses == [SessionStatus.CANCELLED, *[SessionStatus.COMPLETED] * 2, SessionStatus.CANCELLED]
        assert not node.running


async def test_early_stop_in_order_waits_for_the_slow_of_low_number(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode(capacity=4)
        await control.add_node(node, kind="far")
        stop = {"early_stop_min_usable_sessions": 2, "early_stop": EarlyStop.IN_ORDER}
        await control.submit(a_task(samples=4, **stop))
        await until(lambda: len(node.running) == 4)
        by_sample = {work.sample: work.session_id for work in node.started}
        node.end(by_sample[3])
        node.end(by_sample[1])
        await until(lambda: len(node.acknowledged) == 2)
        assert (await control.task("t")).selected_samples is None
        assert set(node.running) == {by_sample[0], by_sample[2]}
        node.end(by_sample[0])
        task = await ended(control)
        assert task.selected_samples == [0, 1]
        statuses = [record.status for record in await current(control)]
        assert statuses == [*[SessionStatus.COMPLETED] * 2, SessionStatus.CANCELLED, SessionStatus.COMPLETED]


async def test_events_come_stored_first_and_then_live_without_a_gap(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        await control.submit(a_task())
        seen: list[tuple[int, str]] = []

        async def watch(after: int) -> None:
            async for event in control.events(after, task_id="t"):
                seen.append((event.id, event.kind))
                if event.kind == "task.completed":
                    return

        watching = asyncio.create_task(watch(0))
        await until(lambda: seen)
        await control.add_node(node, kind="far")
        await until(lambda: node.running)
        node.move(node.started[0].session_id, SessionStatus.RUNNING)
        await until(lambda: any(kind == "session.running" for _, kind in seen))
        node.end(node.started[0].session_id)
        await asyncio.wait_for(watching, 30)
        kinds = ["task.submitted", "session.placed", "session.running", "session.completed", "task.completed"]
        assert [kind for _, kind in seen] == kinds
        again, seen = seen[2:], []
        await asyncio.wait_for(watch(again[0][0] - 1), 30)
        assert seen == again


async def test_a_caller_that_hangs_up_leaves_nothing_half_done(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        for number in range(10):
            submitting = asyncio.create_task(control.submit(a_task(f"t{number}", samples=2)))
            for _ in range(number):
                await asyncio.sleep(0)
            submitting.cancel()
            await asyncio.gather(submitting, return_exceptions=True)
        stored = {task.task_id for task in await control.tasks()}
        assert stored == set(control.ledger.groups)
        assert len(control.ledger.queue) == 2 * len(stored)
