# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from nemo_gym_polar.rollouts.control.news import event
from nemo_gym_polar.rollouts.control.records import NodeRecord, SessionRecord, TaskRecord, TaskState
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.errors import StoreError, StoreInUseError
from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.store.tables import metadata
from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest
from tests.support.postgres import Postgres


def a_task(task_id: str = "t", created: float = 1.5, **fields: object) -> TaskRecord:
    request = TaskRequest(task_id=task_id, instruction="Grüße, \U0001f600 \n", metadata={"deep": [{"a": None}, 1e300]})
    given = {"state": TaskState.RUNNING, "total_sessions": 2, "request": request, **fields}
    return TaskRecord(task_id=task_id, created=created, **given)  # type: ignore[arg-type]


def a_session(session_id: str = "s", sample: int = 0, task_id: str = "t", **fields: object) -> SessionRecord:
    given = {"attempt": 1, "status": SessionStatus.QUEUED, "created": 2.5, "updated": 2.5, **fields}
    return SessionRecord(session_id=session_id, task_id=task_id, sample=sample, **given)  # type: ignore[arg-type]


async def test_records_come_back_as_they_went_in(store_url: str) -> None:
    task = a_task(selected_samples=[0, 1], error="it's")
    session = a_session(reward=0.1, result={"traces": [], "x": {"ü": 1}}, cancelling="why", current=False, usable=True)
    node = NodeRecord(node_id="n", kind="http", url="u", state="ready", seen=3.25, metadata={"a": [1]})
    async with Store(store_url) as store:
        (told,) = await store.write(
            Batch(new_tasks=[task], new_sessions=[session], nodes=[node], events=[event("task.submitted", task_id="t")])
        )
    async with Store(store_url) as store:
        assert await store.task("t") == task
        assert await store.session("s") == session
        assert await store.nodes() == [node]
        assert await store.events() == [told]
        assert await store.task("other") is None


async def test_a_changed_task_keeps_its_request(store_url: str) -> None:
    async with Store(store_url) as store:
        await store.write(Batch(new_tasks=[a_task()]))
        changed = a_task(state=TaskState.FAILED, ended=9.0, ended_sessions=2)
        await store.write(Batch(tasks=[changed]))
        assert await store.task("t") == changed


async def test_a_batch_is_written_whole_or_not_at_all(store_url: str) -> None:
    async with Store(store_url) as store:
        await store.write(Batch(new_tasks=[a_task()], new_sessions=[a_session()]))
        second = a_session("s2")  # a second current attempt at the same sample
        with pytest.raises(StoreError):
            await store.write(Batch(tasks=[a_task(error="x")], new_sessions=[second], events=[event("never")]))
        assert await store.task("t") == a_task()
        assert [session.session_id for session in await store.sessions("t")] == ["s"]
        assert await store.events() == []


async def test_an_attempt_may_take_the_place_of_one_that_was_given_up(store_url: str) -> None:
    async with Store(store_url) as store:
        await store.write(Batch(new_tasks=[a_task()], new_sessions=[a_session()]))
        lost = a_session(current=False, lost="node", status=SessionStatus.ERROR)
        await store.write(Batch(sessions=[lost], new_sessions=[a_session("s2", attempt=2, created=3.0)]))
        assert [session.session_id for session in await store.sessions("t")] == ["s", "s2"]
        assert [session.session_id for session in await store.open_sessions()] == ["s2"]
        assert await store.session_counts() == {SessionStatus.QUEUED: 1}


async def test_tasks_are_found_by_state_harness_time_and_number(store_url: str) -> None:
    async with Store(store_url) as store:
        ended = a_task("b", 2.0, state=TaskState.COMPLETED, ended=3.0)
        never = a_task("c", 3.0, state=TaskState.CANCELLED, request=None, total_sessions=0)
        await store.write(Batch(new_tasks=[a_task("a", 1.0), ended, never]))

        async def found(**query: object) -> list[str]:
            return [task.task_id for task in await store.tasks(**query)]  # type: ignore[arg-type]

        assert await found() == ["c", "b", "a"]
        assert await found(state=TaskState.COMPLETED) == ["b"]
        assert await found(harness="pi") == ["b", "a"]
        assert await found(since=2.0) == ["c", "b"]
        assert await found(limit=1) == ["c"]
        assert [task.task_id for task in await store.open_tasks()] == ["a"]
        assert await store.task_counts() == dict.fromkeys(
            [TaskState.RUNNING, TaskState.COMPLETED, TaskState.CANCELLED], 1
        )


async def test_events_are_numbered_in_the_order_in_which_they_appear(store_url: str) -> None:
    async with Store(store_url) as store:

        async def write(writer: int) -> None:
            for number in range(5):
                await store.write(Batch(events=[event(f"{writer}.{number}.a"), event(f"{writer}.{number}.b")]))

        seen: list[int] = []

        async def read() -> None:
            while len(seen) < 40:
                written = store.written
                page = await store.events(seen[-1] if seen else 0, limit=3)
                seen.extend(one.id for one in page)
                if not page:
                    await written.wait()

        async with asyncio.timeout(60):
            await asyncio.gather(read(), *(write(writer) for writer in range(4)))
        assert len(seen) == len(set(seen)) == 40
        assert seen == sorted(seen)


async def test_text_that_one_database_can_t_hold_is_made_so_that_both_can(store_url: str) -> None:
    async with Store(store_url) as store:
        await store.write(Batch(new_tasks=[a_task()], new_sessions=[a_session(error="a\0b", result={"e": "a\0b"})]))
        found = await store.session("s")
        assert found is not None
        assert found.error == "a\N{REPLACEMENT CHARACTER}b"
        assert found.result == {"e": "a\0b"}


async def test_two_services_can_t_have_one_store(store_url: str) -> None:
    async with Store(store_url) as first:
        with pytest.raises(StoreInUseError, match="another service"):
            await Store(store_url).open()
        await first.write(Batch(new_tasks=[a_task()]))
    async with Store(store_url) as second:
        assert await second.task("t")


async def test_a_database_that_was_away_is_claimed_and_written_again(postgres_server: Postgres) -> None:
    async with Store(postgres_server.database("away")) as store:
        await store.write(Batch(new_tasks=[a_task()]))
        postgres_server.stop("immediate")
        with pytest.raises(StoreError):
            await store.write(Batch(events=[event("lost")]))
        postgres_server.start()
        await store.write(Batch(events=[event("kept")]))
        assert [one.kind for one in await store.events()] == ["kept"]
        with pytest.raises(StoreInUseError):
            await Store(store.url.render_as_string(hide_password=False)).open()


async def test_who_has_lost_the_claim_writes_nothing(postgres_server: Postgres) -> None:
    url = postgres_server.database("fenced")
    async with Store(url) as first:
        await first.write(Batch(new_tasks=[a_task()]))
        postgres_server.stop("immediate")
        postgres_server.start()
        async with Store(url) as second:
            with pytest.raises(StoreError):
                await first.write(Batch(events=[event("stale")]))
            with pytest.raises(StoreInUseError):
                await first.write(Batch(events=[event("stale")]))
            assert await second.events() == []


async def test_options_of_postgresql_have_their_usual_names(postgres_server: Postgres) -> None:
    url = postgres_server.database("options")
    async with Store(f"{url}&sslmode=disable") as store:
        assert await store.tasks() == []
    with pytest.raises(StoreError, match=r"option of the URL is wrong.*nonsense"):
        await Store(f"{url}&nonsense=1").open()


def test_a_wrong_url_is_shown_without_its_password() -> None:
    with pytest.raises(StoreError) as raised:
        Store("postgres//me:hunter2@host/name")
    assert "hunter2" not in str(raised.value)


HOLD = """
import asyncio, sys
from nemo_gym_polar.rollouts.store.store import Store
async def main():
    async with Store(sys.argv[1]):
        print("held", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_a_killed_service_leaves_its_store_free(store_url: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, store_url, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"held\n"
        with pytest.raises(StoreInUseError):
            await Store(store_url).open()
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    async with Store(store_url) as store:
        assert await store.tasks() == []


async def test_a_store_of_a_newer_version_is_refused(store_url: str) -> None:
    async with Store(store_url) as store, store.database.begin() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match=r"schema 9999.*install"):
        await Store(store_url).open()


async def test_the_revisions_make_the_tables_that_the_program_knows(store_url: str) -> None:
    def differences(connection: sa.Connection) -> list[object]:
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)

    async with Store(store_url) as store, store.reading() as connection:
        assert await connection.run_sync(differences) == []


async def test_a_request_of_another_version_is_named(store_url: str) -> None:
    async with Store(store_url) as store:
        await store.write(Batch(new_tasks=[a_task()]))
        async with store.database.begin() as connection:
            await connection.execute(sa.text("""UPDATE tasks SET request = '{"task_id": "t", "was": 1}'"""))
        with pytest.raises(StoreError, match="request of task 't' is not one of this version"):
            await store.task("t")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("polar.db", "no URL"),
        ("mysql://x/y", "not supported"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("postgresql://nobody:secret@127.0.0.1:1/x", r"store postgresql://nobody:\*\*\*@127.0.0.1:1/x: "),
    ],
)
async def test_what_is_no_store_is_said_in_one_line(url: str, problem: str) -> None:
    with pytest.raises(StoreError, match=problem) as raised:
        await Store(url).open()
    assert "\n" not in str(raised.value)


async def test_only_its_owner_reads_a_store(tmp_path: Path) -> None:
    async with Store(f"sqlite:///{tmp_path}/polar.db") as store:
        await store.write(Batch(new_tasks=[a_task()]))
        assert {path.name: path.stat().st_mode & 0o077 for path in files(tmp_path)} == {
            "polar.db": 0,
            "polar.db-shm": 0,
            "polar.db-wal": 0,
            "polar.db.lock": 0,
        }


def files(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_a_directory_that_can_t_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        await Store(f"sqlite:///{tmp_path}/file/polar.db").open()
