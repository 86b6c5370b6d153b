# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A service that starts again on the store of one before it."""

from __future__ import annotations

from pathlib import Path

from nemo_gym_polar.rollouts.control.records import NodeRecord, TaskState
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.control import a_task, attempts, begun, control_plane, current, ended, until
from tests.support.simulated_node import SimulatedNode


async def test_a_restarted_service_finds_its_nodes_and_all_that_happened(store_url: str, tmp_path: Path) -> None:
    node = SimulatedNode(capacity=3)

    async def connect(record: NodeRecord) -> SimulatedNode | None:
        return node if record.node_id == node.id else None

    async with control_plane(store_url, tmp_path, connect) as control:
        names = await begun(control, node, samples=3)
        await control.submit(a_task("waiting"))
        node.end(names[0])
        await until(lambda: names[0] in node.acknowledged)
    node.end(names[1])
    async with control_plane(store_url, tmp_path, connect) as control:
        await until(lambda: names[1] in node.acknowledged)
        node.end(names[2])
        task = await ended(control)
        assert (task.state, task.usable_sessions) == (TaskState.COMPLETED, 3)
        assert [record.session_id for record in await attempts(control)] == names
        await until(lambda: len(node.started) == 4)
        node.end(node.started[3].session_id)
        assert (await ended(control, "waiting")).state is TaskState.COMPLETED


async def test_sessions_of_a_node_that_ended_with_the_service_are_tried_again(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        before = SimulatedNode("local", capacity=2)
        await control.add_node(before, kind="local")
        await control.submit(a_task(samples=3))
        await until(lambda: len(before.running) == 2)
        before.move(before.started[0].session_id, SessionStatus.RUNNING)
        await until(lambda: SessionStatus.RUNNING in {record.status for record in control.ledger.live.values()})
    async with control_plane(store_url, tmp_path) as control:
        assert {record.node_id for record in await current(control)} == {None}
        after = SimulatedNode("local", capacity=3)
        await control.add_node(after, kind="local")
        await until(lambda: len(after.running) == 3)
        assert [(work.sample, work.attempt) for work in after.started] == [(0, 2), (1, 1), (2, 1)]
        for name in list(after.running):
            after.end(name)
        assert (await ended(control)).usable_sessions == 3
        lost = [record for record in await attempts(control) if record.lost]
        assert [(record.sample, record.status) for record in lost] == [
            (0, SessionStatus.ERROR),
            (1, SessionStatus.CANCELLED),
        ]


async def test_a_node_of_before_that_does_not_come_back_is_lost(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        await begun(control, SimulatedNode())
    async with control_plane(store_url, tmp_path) as control:
        assert [(record.node_id, record.state) for record in control.nodes()] == [("n1", "lost")]
        other = SimulatedNode("n2")
        await control.add_node(other, kind="far")
        await until(lambda: other.running)
        assert other.started[0].attempt == 2


async def test_a_cancel_outlives_the_service(store_url: str, tmp_path: Path) -> None:
    node = SimulatedNode()

    async def connect(record: NodeRecord) -> SimulatedNode | None:
        return node

    async with control_plane(store_url, tmp_path, connect) as control:
        await begun(control, node)
        node.silent = True
        await control.cancel("t")
    node.silent = False
    async with control_plane(store_url, tmp_path, connect) as control:
        assert (await ended(control)).state is TaskState.CANCELLED
        assert not node.running and len(node.started) == 1


async def test_a_node_of_before_can_be_removed_before_it_comes_back(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        await begun(control, SimulatedNode())
    async with control_plane(store_url, tmp_path, node_timeout=600) as control:
        await control.remove("n1")
        assert control.nodes() == await control.store.nodes() == []
        other = SimulatedNode("n2")
        await control.add_node(other, kind="far")
        await until(lambda: other.running)


async def test_a_node_of_before_can_be_drained_before_it_comes_back(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        await begun(control, SimulatedNode())
    for _ in range(2):
        async with control_plane(store_url, tmp_path, node_timeout=600) as control:
            assert (await control.drain("n1")).state == "draining"
    async with control_plane(store_url, tmp_path, node_timeout=600) as control:
        await control.add_node(SimulatedNode(), kind="far")
        await until(lambda: control.roster.members["n1"].attached)
        assert [record.state for record in control.nodes()] == ["draining"]
