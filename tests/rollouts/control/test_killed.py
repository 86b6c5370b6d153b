# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A service that is killed at any instant, and started again on the same store."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.rollouts.control.records import SessionRecord, TaskState
from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK_ONCE

SAMPLES = 5
WITHIN = 120.0


@contextlib.asynccontextmanager
async def service(store_url: str, directory: Path, engine: FakeEngine) -> AsyncIterator[asyncio.subprocess.Process]:
    """Killed at the end, if it still runs."""
    arguments = [
        store_url,
        str(directory),
        engine.url,
        str(engine.tokenizer_directory),
        ASK_ONCE + "sleep 0.2\n",
        str(SAMPLES),
    ]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.service_process", *arguments), stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def seen(process: asyncio.subprocess.Process, kind: str, after: int) -> int:
    """The number of the first event of this kind after that one."""
    assert process.stdout is not None
    async with asyncio.timeout(WITHIN):
        while line := (await process.stdout.readline()).decode().split():
            if int(line[0]) > after and line[1] == kind:
                return int(line[0])
    raise AssertionError(f"it ended before {kind}")


async def kept(store_url: str) -> list[SessionRecord]:
    async with Store(store_url) as store:
        return await store.sessions("task")


async def test_a_service_that_is_killed_again_and_again_ends_every_sample_once(
    store_url: str, tmp_path: Path, engine: FakeEngine
) -> None:
    last, final = 0, {}
    for kind in ("task.submitted", "session.placed", "session.init", "session.running", "session.completed"):
        async with service(store_url, tmp_path, engine) as process:
            last = await seen(process, kind, last)
        records = await kept(store_url)
        for record in records:  # what had ended has ended
            if record.session_id in final:
                assert record == final[record.session_id]
        final |= {record.session_id: record for record in records if record.status.final}
    async with service(store_url, tmp_path, engine) as process:
        await seen(process, "task.completed", last)
        assert await asyncio.wait_for(process.wait(), WITHIN) == 0
    records = await kept(store_url)
    current = [record for record in records if record.current]
    assert [record.sample for record in current] == list(range(SAMPLES))
    assert {record.status for record in current} == {SessionStatus.COMPLETED}
    assert all(record.reward == 1.0 for record in current)
    check_files(tmp_path, records)
    async with Store(store_url) as store:
        (task,) = await store.tasks()
        assert (task.state, task.ended_sessions, task.usable_sessions) == (TaskState.COMPLETED, SAMPLES, SAMPLES)
        ends = [one.data["sample"] for one in await store.events() if one.kind == "session.completed"]
        assert sorted(ends) == list(range(SAMPLES))


def check_files(directory: Path, records: list[SessionRecord]) -> None:
    """Every attempt that ended has its traces; every one that was lost has left what it had sampled."""
    lost = [record for record in records if record.lost]
    assert any(record.status is SessionStatus.ERROR for record in lost)
    for record in records:
        journal = directory / "journals" / f"{record.session_id}.journal"
        if record.status is SessionStatus.COMPLETED:
            assert (directory / str(record.result_path)).stat().st_size > 0
            assert len(recover(journal).forest.turns) == 1
        elif journal.exists():
            recover(journal)
