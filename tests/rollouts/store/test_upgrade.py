# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A store that an older version has written goes on with this one."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy.ext.asyncio import AsyncConnection

from nemo_gym_polar.rollouts.store.engine import make_database
from nemo_gym_polar.rollouts.store.engine import store_url as driven
from nemo_gym_polar.rollouts.store.migrate import make_config
from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest

REQUEST = TaskRequest(task_id="t", instruction="Do it.")
TASK = "INSERT INTO tasks (task_id, state, request, created, total_sessions, ended_sessions, usable_sessions)"
SESSION = (
    "INSERT INTO sessions (session_id, task_id, sample, attempt, status, created, updated, current, usable, moves)"
)


async def before(connection: AsyncConnection, revision: str) -> None:
    """A task and its session, as that revision had them."""
    await connection.run_sync(lambda sync: command.upgrade(make_config(sync), revision))
    asked = {"request": REQUEST.model_dump_json()}
    await connection.execute(sa.text(f"{TASK} VALUES ('t', 'running', :request, 1.5, 1, 0, 0)"), asked)
    await connection.execute(sa.text(f"{SESSION} VALUES ('s', 't', 0, 1, 'QUEUED', 1.5, 1.5, true, false, 0)"))


@pytest.mark.parametrize("revision", ["0001", "0002", "0003"])
async def test_what_it_holds_is_kept(store_url: str, revision: str) -> None:
    database = make_database(driven(store_url))
    async with database.begin() as connection:
        await before(connection, revision)
    await database.dispose()
    async with Store(store_url) as store:
        task, session = await store.task("t"), await store.session("s")
        assert task and session
        assert (task.request, task.first_prompt_mismatches) == (REQUEST, None)
        assert (session.status, session.first_prompt) == (SessionStatus.QUEUED, None)
        assert [one.session_id for one in await store.open_sessions()] == ["s"]
