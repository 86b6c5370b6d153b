# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What Prometheus reads on the service's port."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from nemo_gym_polar.rollouts.api.metrics import TYPE
from nemo_gym_polar.rollouts.callbacks.delivery import Delivery, contents_of
from nemo_gym_polar.rollouts.callbacks.settings import CallbackSettings
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.callback_target import CallbackTarget
from tests.support.control import until
from tests.support.control_api import Desk, desk, task


async def scraped(at: Desk) -> Mapping[str, float]:
    """By name and label values: `nodes ready`."""
    async with at.client.get(f"{at.url}/metrics") as reply:
        assert (reply.status, reply.headers["content-type"]) == (200, TYPE)
        text = await reply.text()
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    names = [" ".join([one.name.removeprefix("polar_service_"), *one.labels.values()]) for one in samples]
    assert len(set(names)) == len(names)
    return dict(zip(names, (one.value for one in samples), strict=True))


async def becomes(at: Desk, **expected: float) -> Mapping[str, float]:
    """Names with «__» for the space."""
    wanted = {name.replace("__", " "): value for name, value in expected.items()}

    async def found() -> Mapping[str, float] | None:
        now = await scraped(at)
        return now if now.items() >= wanted.items() else None

    now = await until(found)
    assert now
    return now


async def test_before_anything_happened(at: Desk) -> None:
    found = await scraped(at)
    for name in ("sessions RUNNING", "events_total node.lost", "callbacks given_up", "nodes lost", "trouble"):
        assert found[name] == 0, name
    assert (found["nodes ready"], found["store_up"], found["events_total node.added"]) == (1, 1, 1)
    assert found["process_start_time_seconds"] > 0


async def test_sessions_on_their_way(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=6, dispatch_priority=7))
    await at.started(4)
    found = await scraped(at)
    assert (found["sessions QUEUED"], found["waiting_sessions 7"], found["placed_sessions n1"]) == (6, 2, 4)
    assert (found["node_capacity n1"], found["tasks running"], found["events_total session.placed"]) == (4, 1, 4)
    at.node.move(at.node.started[0].session_id, SessionStatus.RUNNING)
    await becomes(at, sessions__RUNNING=1, sessions__QUEUED=5)


async def test_what_ended_and_what_is_kept(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=2))
    await at.started(2)
    for work, status in zip(list(at.node.started), (SessionStatus.COMPLETED, SessionStatus.TIMEOUT), strict=True):
        at.node.end(work.session_id, status)
    found = await becomes(at, tasks__completed=1, kept_sessions__COMPLETED=1, kept_sessions__TIMEOUT=1)
    assert found["sessions QUEUED"] == 0
    await becomes(at, **{"events_total__session.completed": 1, "events_total__task.completed": 1})
    assert found["store_seconds_count write"] > 0
    assert found["store_failures_total write"] == 0


async def test_a_lost_node(tmp_path: Path) -> None:
    async with desk(tmp_path, lost_sessions="report") as at:
        await at.call("POST", "/rollout/task/submit", json=task())
        await at.started(1)
        at.node.dead = True
        await becomes(at, **{"events_total__node.lost": 1, "nodes__ready": 0})


async def test_callbacks_that_fail(tmp_path: Path) -> None:
    quick = CallbackSettings(first_delay=30.0, give_up_after=3600.0)
    async with (
        CallbackTarget(lambda _: 500) as target,
        desk(tmp_path) as at,
        Delivery(at.control, quick, contents_of(at.control, traces=False)),
    ):
        await at.call("POST", "/rollout/task/submit", json=task(callback_url=target.url))
        await at.started(1)
        at.node.end(at.node.started[0].session_id)
        found = await becomes(at, callbacks_retried=2)  # the session's and the task's
        assert (found["callbacks pending"], found["callbacks delivered"]) == (2, 0)


async def test_a_store_that_can_not_be_read(at: Desk) -> None:
    await at.call("POST", "/rollout/task/submit", json=task(num_samples=6))
    await at.started(4)
    await at.control.store.close()
    found = await scraped(at)
    assert (found["store_up"], found["sessions QUEUED"], found["nodes ready"]) == (0, 6, 1)
    assert "tasks running" not in found


async def test_it_is_behind_the_door(at: Desk) -> None:
    async with aiohttp.ClientSession() as stranger, stranger.get(f"{at.url}/metrics") as reply:
        assert reply.status == 401
