# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What nodes are told, and what they may not do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.control.errors import UnknownNodeError
from nemo_gym_polar.rollouts.control.records import TaskState
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeBusyError, NodeError
from tests.support.control import a_task, attempts, begun, control_plane, ended, until
from tests.support.faulty_store import FaultyStore
from tests.support.simulated_node import SimulatedNode


async def test_a_start_whose_answer_was_lost_runs_once(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, other = SimulatedNode("n1"), SimulatedNode("n2")
        node.deaf = True
        await control.add_node(node, kind="far")
        await control.submit(a_task())
        await until(lambda: node.running)
        await control.add_node(other, kind="far")
        node.end(node.started[0].session_id)
        await ended(control)
        assert len(node.started) == 1 and not other.started


async def test_a_node_that_refuses_loses_its_turn(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, other = SimulatedNode("n1"), SimulatedNode("n2")
        node.refusal = NodeBusyError("full")
        await control.add_node(node, kind="far")
        await control.submit(a_task())
        await control.add_node(other, kind="far")
        await until(lambda: other.running)
        other.end(other.started[0].session_id)
        await ended(control)
        assert len(await attempts(control)) == 1


async def test_a_cancel_while_a_node_refuses_ends_the_session(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        asked, answer = asyncio.Event(), asyncio.Event()

        class Slow(SimulatedNode):
            async def start(self, assignment: Assignment) -> None:
                asked.set()
                await answer.wait()
                raise NodeBusyError("full")

        await control.add_node(Slow(), kind="far")
        await control.submit(a_task())
        await asyncio.wait_for(asked.wait(), 30)
        await control.cancel("t")
        answer.set()
        assert (await ended(control)).state is TaskState.CANCELLED


def found(directory: Path, name: str) -> list[Path]:
    return list(directory.rglob(name))


async def test_a_node_can_t_choose_where_its_results_are_written(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path / "run") as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        node.names = "../../elsewhere"
        node.end(name)
        assert (await ended(control)).usable_sessions == 1
        assert found(tmp_path, "result.json") == [tmp_path / "run" / "sessions" / name / "result.json"]


async def test_a_drained_node_ends_what_it_has_and_gets_no_more(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        assert (await control.drain("n1")).state == "draining"
        await control.submit(a_task("u"))
        node.end(name)
        assert (await ended(control)).state is TaskState.COMPLETED
        assert len(node.started) == 1
        other = SimulatedNode("n2")
        await control.add_node(other, kind="far")
        await until(lambda: other.running)
        with pytest.raises(UnknownNodeError):
            await control.drain("nobody")


async def test_a_removed_node_gives_its_sessions_up(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, other = SimulatedNode("n1"), SimulatedNode("n2")
        await begun(control, node)
        await control.add_node(other, kind="far")
        await control.remove("n1")
        await until(lambda: other.running and not node.running)
        assert [record.node_id for record in control.nodes()] == ["n2"]


async def test_pausing_reaches_every_node_and_says_which_refused(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        nodes = [SimulatedNode("n1"), SimulatedNode("n2")]
        for node in nodes:
            await control.add_node(node, kind="far")
        await until(lambda: all(member.attached for member in control.roster.members.values()))
        await control.pause(3.0)
        await control.resume("v2")
        assert [(node.paused, node.versions) for node in nodes] == [([3.0], ["v2"])] * 2
        nodes[1].silent = True
        with pytest.raises(NodeError, match="n2: it is silent"):
            await control.pause(1.0)
        assert nodes[0].paused == [3.0, 1.0]


async def test_a_node_that_comes_back_while_it_is_removed_stays_known(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, store = SimulatedNode(), control.store
        assert isinstance(store, FaultyStore)
        await begun(control, node)
        store.slow = "node.lost"
        removing = asyncio.create_task(control.remove("n1"))
        await asyncio.wait_for(store.waits.wait(), 30)
        await control.add_node(node, kind="far")
        store.go.set()
        await removing
        assert [record.node_id for record in await store.nodes()] == ["n1"]
        await until(lambda: len(node.started) == 2)
