# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Disks and databases that refuse for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.control import a_task, begun, control_plane, ended, until
from tests.support.faulty_store import FaultyStore
from tests.support.postgres import Postgres
from tests.support.simulated_node import SimulatedNode


async def test_a_result_that_can_t_be_written_stays_at_its_node(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        (tmp_path / "sessions").write_text("in the way")
        node.end(name)

        async def trouble() -> str | None:
            return (await control.status()).trouble

        assert name in str(await until(trouble))
        assert (await control.status()).unstored == 1
        assert node.acknowledged == [] and name in control.ledger.live
        (tmp_path / "sessions").unlink()
        assert (await ended(control)).usable_sessions == 1
        await until(lambda: node.acknowledged == [name])
        assert ((await control.status()).unstored, await trouble()) == (0, None)


async def test_a_store_that_refuses_for_a_while_loses_nothing(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, store = SimulatedNode(), control.store
        assert isinstance(store, FaultyStore)
        (name,) = await begun(control, node)
        store.full = True
        node.end(name)

        async def trouble() -> str | None:
            return (await control.status()).trouble

        await until(trouble)
        assert node.acknowledged == []
        store.full = False
        await until(lambda: node.acknowledged == [name])
        assert (await ended(control)).usable_sessions == 1
        kinds = [event.kind for event in await store.events(task_id="t")]
        assert kinds.count("session.completed") == kinds.count("task.completed") == 1


async def test_a_write_whose_answer_was_lost_is_not_done_twice(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, store = SimulatedNode(), control.store
        assert isinstance(store, FaultyStore)
        (name,) = await begun(control, node, samples=1)
        store.lossy = True
        node.end(name)
        await until(lambda: node.acknowledged == [name])
        store.lossy = False
        assert (await ended(control)).usable_sessions == 1
        kinds = [event.kind for event in await store.events(task_id="t")]
        assert kinds.count("session.completed") == kinds.count("task.completed") == 1


async def test_details_that_are_no_json_do_not_cost_the_result(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        node.metadata = {"evaluation": object()}
        node.end(name, reward=0.5)
        await ended(control)
        record = await control.session(name)
        assert (record.status, record.reward) == (SessionStatus.COMPLETED, 0.5)
        assert "no JSON" in str(record.error)


async def test_a_database_that_goes_away_and_comes_back_loses_nothing(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    async with control_plane(postgres_server.database("going"), tmp_path) as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        postgres_server.stop("immediate")
        node.end(name)

        async def trouble() -> bool:
            return control.roster.trouble.text is not None

        await until(trouble)
        with pytest.raises(StoreError):
            await control.submit(a_task("u"))
        assert node.acknowledged == []
        postgres_server.start()
        assert (await ended(control)).usable_sessions == 1
        assert (await control.submit(a_task("u"))).task_id == "u"
        await until(lambda: len(node.started) == 2)
