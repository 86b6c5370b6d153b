# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Removal over HTTP, by the client and by `polar prune`."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.client import NotFoundError, RolloutClient
from nemo_gym_polar.rollouts.retention.pruned import Pruned
from nemo_gym_polar.rollouts.retention.settings import Bounds
from tests.support.commands import run_command
from tests.support.control import ended, until
from tests.support.control_api import TOKEN, Desk, desk, task


async def run(at: Desk, *task_ids: str) -> None:
    for task_id in task_ids:
        await at.call("POST", "/rollout/task/submit", json=task(task_id))
        await until(lambda: at.node.running)
        at.node.end(*at.node.running)
        await ended(at.control, task_id)


async def test_by_the_client(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, RolloutClient(at.url, TOKEN) as client:
        await run(at, "one", "two")
        await at.call("POST", "/rollout/task/submit", json=task("three"))
        bounds = Bounds(keep_tasks=1)
        assert await client.prune(bounds, dry_run=True) == Pruned(tasks=1, sessions=1, dry_run=True)
        assert await client.prune(bounds) == Pruned(tasks=1, sessions=1)
        with pytest.raises(NotFoundError, match="there is no task 'one'"):
            await client.task("one")
        assert [one.task_id for one in await client.tasks()] == ["three", "two"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "give keep_days or keep_tasks"),
        ({"journals": True}, "give keep_days or keep_tasks"),
        ({"keep_days": 0}, "keep_days=0: Input should be greater than 0"),
        ({"keep_day": 1}, "did you mean 'keep_days'?"),
        ({"keep_tasks": -1}, "keep_tasks=-1"),
    ],
)
async def test_what_is_wrong_is_named(tmp_path: Path, body: dict[str, object], words: str) -> None:
    async with desk(tmp_path) as at:
        await run(at, "one")
        code, said = await at.call("POST", "/admin/prune", json=body)
        assert (code, words in json.dumps(said, ensure_ascii=False)) == (422, True), said
        assert (await at.call("GET", "/rollout/task/one"))[0] == 200


async def test_by_the_command(tmp_path: Path) -> None:
    async with desk(tmp_path / "run") as at:
        await run(at, "one", "two")

        async def polar(*arguments: str) -> subprocess.CompletedProcess[str]:
            told = {"POLAR_URL": at.url, "POLAR_CONTROL_TOKEN": TOKEN}
            return await asyncio.to_thread(run_command, tmp_path, "polar", "prune", *arguments, **told)

        done = await polar("--keep-tasks", "1")
        assert (done.returncode, done.stdout) == (0, "removed 1 tasks with 1 sessions\n"), done.stderr
        wrong = await polar("--keep-days", "0")
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert "--keep-days 0.0: Input should be greater than 0" in wrong.stderr
