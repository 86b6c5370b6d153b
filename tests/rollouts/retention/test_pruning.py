# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What is removed of a store, what never is, and what becomes of the files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.errors import UnknownTaskError
from nemo_gym_polar.rollouts.control.news import event
from nemo_gym_polar.rollouts.control.records import SessionRecord, TaskRecord, TaskState
from nemo_gym_polar.rollouts.control.settings import LostSessions
from nemo_gym_polar.rollouts.retention.pruned import Pruned
from nemo_gym_polar.rollouts.retention.pruning import Pruner, Retention
from nemo_gym_polar.rollouts.retention.settings import Bounds, RetentionSettings
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.callbacks import CallbackRecord, CallbackState, CallbackStore
from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest
from tests.support.control import a_task, begun, control_plane, ended, until
from tests.support.simulated_node import SimulatedNode

DAY = 86400.0
ALL = Bounds(keep_tasks=0)


async def put(control: Coordinator, task_id: str, days: float | None, *, url: str | None = None) -> int:
    """A task that ended so many days ago, or hasn't, with a session and its files; the number of its last event."""
    end = None if days is None else time.time() - days * DAY
    state = TaskState.RUNNING if end is None else TaskState.COMPLETED
    request = TaskRequest(task_id=task_id, instruction="Do it.", callback_url=url, metadata={"callback_url": None})
    task = TaskRecord(task_id=task_id, state=state, request=request, created=1.0, ended=end, total_sessions=1)
    status = SessionStatus.QUEUED if end is None else SessionStatus.COMPLETED
    times = {"created": 1.0, "updated": 1.0}
    session = SessionRecord(session_id=f"s-{task_id}", task_id=task_id, sample=0, attempt=1, status=status, **times)
    told = [event("task.submitted", task_id=task_id), event(f"task.{state}", task_id=task_id)]
    *_, last = await control.store.write(Batch(new_tasks=[task], new_sessions=[session], events=told))
    for path in files(control.settings.directory, task_id):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("kept")
    return last.id


def files(directory: Path, task_id: str) -> list[Path]:
    name = f"s-{task_id}"
    return [directory / f"traces/{name}.jsonl", directory / f"sessions/{name}/result.json", journal(directory, task_id)]


def journal(directory: Path, task_id: str) -> Path:
    return directory / f"journals/s-{task_id}.journal"


async def kept(control: Coordinator) -> list[str]:
    return sorted(task.task_id for task in await control.tasks())


async def test_nothing_is_removed_without_a_bound(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        await put(control, "old", 10_000)
        assert await Pruner(control).prune(Bounds()) == Pruned()
        async with Retention(control, RetentionSettings()) as retention:
            assert retention._loop is None
        assert await kept(control) == ["old"]


async def test_what_ended_long_ago_goes_with_all_that_it_left(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        for task_id, days in {"old": 31.0, "new": 29.0, "open": None}.items():
            await put(control, task_id, days)
        bounds = Bounds(keep_days=30)
        assert await Pruner(control).prune(bounds, dry_run=True) == Pruned(tasks=1, sessions=1, dry_run=True)
        assert await kept(control) == ["new", "old", "open"]
        assert await Pruner(control).prune(bounds) == Pruned(tasks=1, sessions=1)
        assert await kept(control) == ["new", "open"]
        assert await control.store.session("s-old") is None
        assert {one.task_id for one in await control.store.events()} == {"new", "open"}
        assert [path for path in files(tmp_path, "old") if path.exists()] == [journal(tmp_path, "old")]
        assert not (tmp_path / "sessions/s-old").exists()
        assert all(path.exists() for name in ("new", "open") for path in files(tmp_path, name))


async def test_the_newest_stay(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        for number in range(120):  # more than a page, and some that ended at once
            await put(control, f"t{number:03}", 1 + number // 3)
        await put(control, "open", None)
        assert await Pruner(control).prune(Bounds(keep_tasks=7)) == Pruned(tasks=113, sessions=113)
        assert await kept(control) == ["open", *(f"t{number:03}" for number in (0, 1, 2, 3, 4, 5, 8))]
        assert await Pruner(control).prune(Bounds(keep_tasks=7)) == Pruned()
        assert await Pruner(control).prune(Bounds(keep_tasks=7, keep_days=1.5)) == Pruned(tasks=4, sessions=4)


@pytest.mark.parametrize("state", CallbackState)
async def test_a_callback_that_is_not_delivered_keeps_its_task(
    store_url: str, tmp_path: Path, state: CallbackState
) -> None:
    async with control_plane(store_url, tmp_path) as control:
        last = await put(control, "t", 9, url="http://x/")
        record = CallbackRecord(
            id=last, task_id="t", session_id=None, url="http://x/", state=state, attempts=1, created=1.0, due=1.0
        )
        await CallbackStore(control.store).add([record], last)
        stays = state is not CallbackState.DELIVERED
        assert await Pruner(control).prune(ALL) == (Pruned(held=1) if stays else Pruned(tasks=1, sessions=1))
        assert await kept(control) == (["t"] if stays else [])
        done = await Pruner(control).prune(Bounds(keep_tasks=0, given_up_callbacks=True))
        assert (done.tasks, done.held) == {"pending": (0, 1), "given_up": (1, 0), "delivered": (0, 0)}[state]


async def test_so_does_one_that_nobody_has_made_yet(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        last = await put(control, "t", 9, url="http://x/")
        await put(control, "silent", 9)
        assert await Pruner(control).prune(ALL) == Pruned(tasks=1, sessions=1, held=1)
        await CallbackStore(control.store).add([], last - 1)
        assert await Pruner(control).prune(ALL) == Pruned(held=1)
        await CallbackStore(control.store).add([], last)
        assert await Pruner(control).prune(ALL) == Pruned(tasks=1, sessions=1)


async def test_journals_go_if_that_is_said(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        await put(control, "t", 9)
        await Pruner(control).prune(Bounds(keep_days=1, journals=True))
    assert not [path for path in files(tmp_path, "t") if path.exists()]


async def test_a_task_whose_files_can_not_be_removed_is_kept(tmp_path: Path) -> None:
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path / "run") as control:
        await put(control, "t", 9)
        there = tmp_path / "run/sessions"
        there.rename(tmp_path / "away")
        there.write_text("in the way")
        assert await Pruner(control).prune(ALL) == Pruned(failed=1)
        assert await kept(control) == ["t"]
        there.unlink()  # now there is nothing to remove, as after a removal that broke off
        assert await Pruner(control).prune(ALL) == Pruned(tasks=1, sessions=1)


async def test_events_of_nodes_go_with_their_time(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        long_ago = event("node.added", node_id="n").model_copy(update={"time": 1.0})
        await control.store.write(Batch(events=[long_ago, event("node.lost", node_id="n")]))
        last = await put(control, "open", None)
        await Pruner(control).prune(Bounds(keep_days=1))
        found = await control.store.events()
        assert [one.kind for one in found] == ["node.lost", "task.submitted", "task.running"]
        (fresh,) = await control.store.write(Batch(events=[event("node.added", node_id="m")]))
        assert fresh.id > last


async def test_a_service_prunes_by_itself(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        async with Retention(control, RetentionSettings(keep_tasks=0, every=0.05)):
            node.end(name)

            async def gone() -> bool:
                return not await control.tasks()

            await until(gone)
        with pytest.raises(UnknownTaskError):
            await control.task("t")
        assert not (tmp_path / "sessions" / name).exists()
        again = await control.submit(a_task())  # whoever submits it again has it run again
        assert again.state is TaskState.RUNNING


async def test_a_result_that_comes_after_its_task_is_gone(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path, lost_sessions=LostSessions.REPORT) as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        node.silent = True
        await ended(control)
        assert (await Pruner(control).prune(ALL)).tasks == 1
        node.silent = False
        node.end(name)
        await until(lambda: node.acknowledged == [name])
        assert await control.store.session(name) is None
        assert not (tmp_path / "sessions" / name).exists()
