# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes and services that end, fall silent or come back: what becomes of their sessions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.errors import UnknownNodeError
from nemo_gym_polar.rollouts.control.records import NodeRecord, SessionRecord, TaskState
from nemo_gym_polar.rollouts.control.settings import LostSessions
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeBusyError, NodeError
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.control import a_task, control_plane, current, ended, until
from tests.support.faulty_store import FaultyStore
from tests.support.postgres import Postgres
from tests.support.simulated_node import SimulatedNode


async def begun(control: Coordinator, node: SimulatedNode, samples: int = 1) -> list[str]:
    """A task whose sessions run at this node, and are known to; their ids by sample."""
    await control.add_node(node, kind="far")
    await control.submit(a_task(samples=samples))
    await until(lambda: len(node.running) == samples)
    names = [work.session_id for work in sorted(node.started, key=lambda work: work.sample)]
    for name in names:
        node.move(name, SessionStatus.RUNNING)
    await until(lambda: all(control.ledger.live[name].status is SessionStatus.RUNNING for name in names))
    return names


def found(directory: Path, name: str) -> list[Path]:
    return list(directory.rglob(name))


async def attempts(control: Coordinator) -> list[SessionRecord]:
    return await control.sessions("t")


@pytest.mark.parametrize("how", ["dead", "silent"])
async def test_a_session_that_had_begun_is_tried_again_elsewhere(store_url: str, tmp_path: Path, how: str) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, other = SimulatedNode("n1"), SimulatedNode("n2")
        (name,) = await begun(control, node)
        setattr(node, how, True)
        await control.add_node(other, kind="far")
        await until(lambda: other.running)
        (again,) = other.started
        assert (again.attempt, again.sample) == (2, 0)
        assert again.session_id != name
        other.end(again.session_id)
        assert (await ended(control)).state is TaskState.COMPLETED
        lost, kept = await attempts(control)
        assert (lost.session_id, lost.status, lost.current) == (name, SessionStatus.ERROR, False)
        assert "node n1" in str(lost.lost)
        assert (kept.status, kept.attempt, kept.current) == (SessionStatus.COMPLETED, 2, True)


async def test_after_the_last_attempt_the_sample_ends_as_an_error(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path, max_attempts=1) as control:
        node = SimulatedNode()
        await begun(control, node)
        node.dead = True
        task = await ended(control)
        assert task.state is TaskState.FAILED
        (record,) = await attempts(control)
        assert (record.status, record.current) == (SessionStatus.ERROR, True)
        assert "attempt 1 of 1" in str(record.error) and record.lost


async def test_lost_sessions_can_be_reported_instead(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path, lost_sessions=LostSessions.REPORT) as control:
        node = SimulatedNode()
        await begun(control, node)
        node.dead = True
        assert (await ended(control)).state is TaskState.FAILED
        (record,) = await attempts(control)
        assert "lost_sessions=report" in str(record.error)


async def test_a_session_that_had_not_begun_is_moved_and_keeps_its_attempt(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path, max_attempts=1, lost_sessions=LostSessions.REPORT) as control:
        node, other = SimulatedNode("n1"), SimulatedNode("n2")
        await control.add_node(node, kind="far")
        await control.submit(a_task())
        await until(lambda: node.running)
        node.dead = True
        await control.add_node(other, kind="far")
        await until(lambda: other.running)
        other.end(other.started[0].session_id)
        assert (await ended(control)).state is TaskState.COMPLETED
        moved, kept = await attempts(control)
        assert (moved.status, moved.current) == (SessionStatus.CANCELLED, False)
        assert (kept.attempt, kept.moves) == (1, 1)


async def test_moves_have_an_end(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path, max_moves=2) as control:
        await control.submit(a_task())
        for number in range(3):
            node = SimulatedNode(f"n{number}")
            await control.add_node(node, kind="far")
            await until(lambda node=node: node.running)
            node.dead = True
        task = await ended(control)
        assert task.state is TaskState.FAILED
        assert "moved 2 times" in str(task.error)


async def test_a_node_that_comes_back_late_is_told_to_stop_and_its_result_kept_but_not_counted(
    store_url: str, tmp_path: Path
) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node, other = SimulatedNode("n1"), SimulatedNode("n2", capacity=2)
        finished, running = await begun(control, node, samples=2)
        node.silent = True
        await control.add_node(other, kind="far")
        await until(lambda: len(other.running) == 2)
        node.end(finished, reward=0.25)  # nobody hears of it yet
        node.silent = False
        await until(lambda: {finished, running} <= set(node.acknowledged))
        assert not node.running
        for work in other.started:
            other.end(work.session_id, reward=0.75)
        task = await ended(control)
        assert (task.usable_sessions, task.ended_sessions) == (2, 2)
        by_id = {record.session_id: record for record in await attempts(control)}
        assert (by_id[finished].reward, by_id[finished].current, by_id[finished].usable) == (0.25, False, False)
        assert by_id[running].result is not None
        assert [record.reward for record in await current(control)] == [0.75, 0.75]
        kinds = [event.kind for event in await control.store.events(task_id="t")]
        assert kinds.count("session.late_result") == 2


async def test_a_session_that_its_node_ended_by_itself_is_tried_again(store_url: str, tmp_path: Path) -> None:
    """As when the node's machine is shut down properly."""
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode(capacity=1)
        (name,) = await begun(control, node)
        node.end(name, SessionStatus.CANCELLED)
        await until(lambda: len(node.started) == 2)
        node.end(node.started[1].session_id)
        assert (await ended(control)).state is TaskState.COMPLETED
        lost, _ = await attempts(control)
        assert lost.lost == "node n1 ended it" and lost.result is not None


async def test_a_node_that_began_anew_under_its_name_has_lost_its_sessions(store_url: str, tmp_path: Path) -> None:
    async with control_plane(store_url, tmp_path) as control:
        node = SimulatedNode()
        (name,) = await begun(control, node)
        node.left_behind()
        await until(lambda: node.running)
        (again,) = node.started
        assert again.session_id != name and again.attempt == 2


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


# The service's own end


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


# A full disk


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
