# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The client for programs without an event loop, in a thread that has none."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.client import ConflictError, NotFoundError, RolloutClient, SyncRolloutClient
from nemo_gym_polar.rollouts.control.records import TaskState
from tests.support.control import until
from tests.support.control_api import TOKEN, Desk, desk, task


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(tmp_path) as made:
        yield made


async def test_a_task_from_submission_to_its_end(at: Desk) -> None:
    def trainer() -> list[str]:
        with SyncRolloutClient(at.url, TOKEN) as client:
            assert client.submit(task(num_samples=2)).total_sessions == 2
            assert client.nodes()[0].node_id == "n1"
            done = client.wait("one", timeout=60)
            assert (done.status, [one.reward for one in done.results]) == (TaskState.COMPLETED, [1.0, 1.0])
            assert [one.task_id for one in client.tasks()] == ["one"]
            assert client.session(done.results[0].session_id).state == "COMPLETED"
            assert len(client.sessions("one")) == 2
            with pytest.raises(NotFoundError):
                client.traces(done.results[0].session_id)
            assert client.cancel("late", register_if_missing=True).status is TaskState.CANCELLED
            with pytest.raises(ConflictError):
                client.submit(task("late"))
            return list(client.status()["tasks"])

    working = asyncio.create_task(asyncio.to_thread(trainer))
    await until(lambda: len(at.node.running) == 2)
    for name in list(at.node.running):
        at.node.end(name)
    assert sorted(await working) == ["cancelled", "completed"]


async def test_events_until_one_has_seen_enough(at: Desk) -> None:
    def watcher() -> list[str]:
        kinds = []
        with SyncRolloutClient(at.url, TOKEN) as client:
            client.submit(task())
            for event in client.events(task_id="one"):
                kinds.append(event.kind)
                if event.kind == "task.completed":
                    break
            client.status()  # the client can still be used
        return kinds

    watching = asyncio.create_task(asyncio.to_thread(watcher))
    await until(lambda: at.node.running)
    at.node.end(*at.node.running)
    kinds = await watching
    assert (kinds[0], kinds[-1]) == ("task.submitted", "task.completed")


async def test_in_a_running_loop_it_says_so(at: Desk) -> None:
    client = SyncRolloutClient(at.url, TOKEN)
    with pytest.raises(RuntimeError, match="running event loop"):
        client.status()
    await asyncio.to_thread(client.close)


def test_its_calls_are_the_others_calls() -> None:
    for name, call in inspect.getmembers(SyncRolloutClient, inspect.isfunction):
        if not name.startswith("_"):
            theirs = inspect.signature(getattr(RolloutClient, name)).parameters
            assert inspect.signature(call).parameters == theirs, name
