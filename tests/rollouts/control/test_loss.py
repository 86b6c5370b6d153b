# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that end, fall silent or come back: what becomes of their sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.control.records import TaskState
from nemo_gym_polar.rollouts.control.settings import LostSessions
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.control import a_task, attempts, begun, control_plane, current, ended, until
from tests.support.simulated_node import SimulatedNode


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
