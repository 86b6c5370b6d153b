# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.rollouts.control.coordinator import first_attempt
from nemo_gym_polar.rollouts.control.placement import Places
from nemo_gym_polar.rollouts.control.queue import Queue
from nemo_gym_polar.rollouts.control.records import SessionRecord, TaskRecord, TaskState
from nemo_gym_polar.rollouts.control.settings import GroupPlacement
from nemo_gym_polar.rollouts.nodes.base import Assignment
from tests.support.control import a_task, control_plane, until
from tests.support.simulated_node import SimulatedNode

NODES = ["n1", "n2", "n3"]
TASK = TaskRecord(task_id="t", state=TaskState.RUNNING, request=a_task(), created=0.0, total_sessions=1)


async def test_the_highest_priority_goes_first_then_the_oldest_task_then_the_lowest_sample(tmp_path: Path) -> None:
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path) as control:
        for name, priority in (("a", 0), ("b", 50), ("c", 50), ("d", 100)):
            await control.submit(a_task(name, samples=2, dispatch_priority=priority))
        assert (await control.status()).queue == {100: 2, 50: 4, 0: 2}
        node = SimulatedNode(capacity=1)
        node.on_start = lambda work: node.end(work.session_id)
        await control.add_node(node, kind="far")
        await until(lambda: len(node.started) == 8)
        order = [(work.request.task_id, work.sample) for work in node.started]
        assert order == [(name, sample) for name in "dbca" for sample in (0, 1)]


async def test_a_task_of_higher_priority_overtakes_what_waits(tmp_path: Path) -> None:
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path) as control:
        node = SimulatedNode(capacity=1)
        await control.add_node(node, kind="far")
        await control.submit(a_task("low", samples=2))
        await until(lambda: node.running)
        await control.submit(a_task("high", dispatch_priority=1))
        node.end(node.started[0].session_id)
        await until(lambda: len(node.started) == 2)
        assert node.started[1].request.task_id == "high"


async def test_a_group_is_spread_over_nodes(tmp_path: Path) -> None:
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path) as control:
        nodes = [SimulatedNode(name, capacity=8) for name in NODES]
        for node in nodes:
            await control.add_node(node, kind="far")
        await until(lambda: all(member.attached for member in control.roster.members.values()))
        await control.submit(a_task(samples=9))
        await until(lambda: sum(len(node.started) for node in nodes) == 9)
        assert [len(node.started) for node in nodes] == [3, 3, 3]
        assert (await control.status()).nodes == dict.fromkeys(NODES, 3)


async def test_a_group_can_be_kept_together(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/polar.db"
    async with control_plane(url, tmp_path, group_placement=GroupPlacement.PACK) as control:
        nodes = [SimulatedNode(name, capacity=4) for name in NODES]
        for node in nodes:
            await control.add_node(node, kind="far")
        await until(lambda: all(member.attached for member in control.roster.members.values()))
        await control.submit(a_task("a", samples=4))
        await control.submit(a_task("b", samples=3))
        await until(lambda: sum(len(node.started) for node in nodes) == 7)
        assert sorted(len({work.request.task_id for work in node.started}) for node in nodes) == [0, 1, 1]


async def test_a_node_whose_engine_is_full_gets_nothing_until_it_is_not(tmp_path: Path) -> None:
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path, max_pressure=0.8) as control:
        node = SimulatedNode()
        node.pressure = 0.9
        await control.add_node(node, kind="far")
        await control.submit(a_task())
        await until(lambda: control.nodes()[0].pressure == 0.9)
        assert len(control.ledger.queue) == 1
        node.pressure = 0.8
        await until(lambda: node.running)


async def test_a_node_never_has_more_than_it_can_take(tmp_path: Path) -> None:
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path) as control:
        most = 0
        node = SimulatedNode(capacity=3)

        def count(work: Assignment) -> None:
            nonlocal most
            most = max(most, len(node.running))
            if work.sample % 3 == 2:
                for name in list(node.running):
                    node.end(name)

        node.on_start = count
        await control.add_node(node, kind="far")
        await control.submit(a_task(samples=30))
        await until(lambda: len(node.acknowledged) == 30)
        assert most == 3


@given(
    free=st.dictionaries(st.sampled_from(NODES), st.integers(0, 4)),
    tasks=st.lists(st.sampled_from("ab"), max_size=15),
    rule=st.sampled_from(GroupPlacement),
)
def test_places_are_given_while_there_are_any(free: dict[str, int], tasks: list[str], rule: GroupPlacement) -> None:
    places = Places(dict(free))
    given = [places.take(task, rule) for task in tasks]
    fits = min(len(tasks), sum(free.values()))
    assert [node is not None for node in given] == [True] * fits + [False] * (len(tasks) - fits)
    assert all(count <= free[node] for node, count in Counter(node for node in given if node).items())


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300)), max_size=400))
def test_the_queue_is_in_order_whatever_was_discarded(steps: list[tuple[bool, int]]) -> None:
    queue, waiting = Queue(), dict[int, SessionRecord]()
    for adds, number in steps:
        if adds and number not in waiting:
            waiting[number] = first_attempt(TASK, number)
            queue.add(waiting[number], TASK)
        elif not adds and number in waiting:
            queue.discard(waiting.pop(number).session_id)
    assert queue.first(1000) == [waiting[number].session_id for number in sorted(waiting)]


def test_what_was_discarded_does_not_pile_up_below_what_waits() -> None:
    queue = Queue()
    queue.add(first_attempt(TASK, 0), TASK)
    for number in range(1, 1000):
        session = first_attempt(TASK, number)
        queue.add(session, TASK)
        queue.discard(session.session_id)
    assert len(queue) == 1
    assert len(queue._heap) < 100
