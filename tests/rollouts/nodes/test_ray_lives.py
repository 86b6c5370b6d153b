# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes on a real Ray cluster over several lives of a service."""

from __future__ import annotations

import asyncio

import psutil
import pytest

from nemo_gym_polar.rollouts.nodes import ray_machines
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeBusyError, NodeLostError
from nemo_gym_polar.rollouts.nodes.ray_actor import About
from nemo_gym_polar.rollouts.nodes.ray_node import RayNode
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.gateways import engine_settings
from tests.support.ray_services import PATIENCE, WAIT, RayStand, ended, ready, running, until
from tests.support.rollouts import ASK_ONCE, Marked, task

CAPACITY = 7  # of a node of `RayStand`, all stages together


async def one_node(stand: RayStand, **fields: object) -> tuple[RayNode, About]:
    """A node by itself; the caller is connected."""
    settings = stand.ray_settings()
    machine = (await ray_machines.machines(settings))[0]
    node_id, actor = await ray_machines.place(machine, settings)
    node = RayNode(node_id, actor)
    return node, await node.open(stand.node_settings(**fields), PATIENCE)


async def living(stand: RayStand) -> set[str]:
    return {one.id for one in await ray_machines.machines(stand.ray_settings())}


async def test_a_node_by_itself_ends_sessions_takes_no_more_and_then_is_gone(stand: RayStand, marked: Marked) -> None:
    async with ray_machines.connected(stand.ray_settings()):
        node, _ = await one_node(stand)
        await node.start(Assignment("one", task(ASK_ONCE + marked.command), 0))
        assert await marked.becomes(True, within=PATIENCE)
        await node.drain()
        with pytest.raises(NodeBusyError):
            await node.start(Assignment("two", task(), 0))
        await node.close()
        assert await marked.becomes(False, within=PATIENCE)
        with pytest.raises(NodeLostError):
            await node.load()


async def test_a_service_that_comes_back_finds_its_nodes_and_replaces_those_with_other_settings(
    stand: RayStand,
) -> None:
    gate, second = stand.directory / "open", stand.directory / "second"
    async with stand.service(2) as control:
        await control.submit(task(ASK_ONCE + WAIT.format(gate), backend="local", num_samples=2))
        begun = await running(control, "task", number=2)
        before = {node.node_id: node.metadata["pid"] for node in control.nodes()}
    async with stand.service(2) as control:
        assert {node.node_id: node.metadata["pid"] for node in control.nodes()} == before
        assert {node.capacity for node in ready(control)} == {CAPACITY}
        gate.touch()
        await ended(control, "task")
        sessions = await control.sessions("task")
        work = task(ASK_ONCE + WAIT.format(second), backend="local", num_samples=2, task_id="second")
        await control.submit(work)
        await until(lambda: len(stand.engine.served) == 4)
        await running(control, "second", number=2)
    assert [(one.session_id, one.attempt, one.status) for one in sessions] == [
        (one.session_id, 1, SessionStatus.COMPLETED) for one in begun
    ]
    async with stand.service(0, node_fields={"rollouts": {"run_workers": 7}}) as control:
        second.touch()
        assert (await ended(control, "second")).usable_sessions == 2
        await until(lambda: len([node for node in ready(control) if node.capacity > CAPACITY]) == 2)
        assert not [one for one in await control.sessions("second") if one.lost]
        last = {node.node_id: node.metadata["pid"] for node in control.nodes()}
        assert not before.keys() & last.keys()
    assert len(stand.engine.served) == 4, "no session ran twice"
    # Ray says that an actor is dead when it has told its process to end.
    await until(lambda: not [pid for pid in (*before.values(), *last.values()) if psutil.pid_exists(pid)])


async def test_a_node_that_nobody_asks_ends_itself(stand: RayStand) -> None:
    async with ray_machines.connected(stand.ray_settings()):
        node, about = await one_node(stand, abandoned_after=0.5)
        await until(lambda: not psutil.pid_exists(about.pid))
        with pytest.raises(NodeLostError):
            await node.load()


async def test_a_node_that_can_not_start_is_said_and_tried_again(
    stand: RayStand, caplog: pytest.LogCaptureFixture
) -> None:
    model = stand.directory / "model"
    engine = engine_settings(stand.engine).model_copy(update={"tokenizer": str(model)})
    async with stand.service(0, node_fields={"engine": engine}) as control:
        await until(lambda: str(model) in caplog.text)
        assert control.nodes() == []
        await asyncio.to_thread(model.symlink_to, stand.engine.tokenizer_directory)
        await until(lambda: len(ready(control)) == 2)


async def test_machines_are_chosen_by_what_they_have(stand: RayStand) -> None:
    async with ray_machines.connected(stand.ray_settings()):
        async with asyncio.timeout(PATIENCE):  # it may still count a machine that another test has killed
            while await living(stand) != set(stand.hosts.machines):  # noqa: ASYNC110 - by another process
                await asyncio.sleep(0.1)
        assert await ray_machines.machines(stand.ray_settings(cpus=2)) == []
        assert await ray_machines.machines(stand.ray_settings(resource="polar")) == []
