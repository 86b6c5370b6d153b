# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a node that comes late is told of the policy's weights."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.nodes.base import NodeError
from tests.support.control import control_plane, until
from tests.support.simulated_node import SimulatedNode


async def test_a_node_that_comes_during_a_pause_is_paused_and_resumed_with_the_others(tmp_path: Path) -> None:
    first, second, third = SimulatedNode("first"), SimulatedNode("second"), SimulatedNode("third")
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path) as control:
        await control.add_node(first, kind="simulated")
        await control.pause(5.0)
        await control.add_node(second, kind="simulated")
        await until(lambda: second.paused)
        assert second.versions == []
        await control.resume("7")
        await control.add_node(third, kind="simulated")
        await until(lambda: third.versions)
        assert [node.versions for node in (first, second, third)] == [["7"]] * 3
        assert [bool(node.paused) for node in (first, second, third)] == [True, True, False]


async def test_a_node_that_is_resumed_while_it_is_being_paused_goes_on(tmp_path: Path) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    class Slow(SimulatedNode):
        async def pause(self, seconds: float) -> None:
            asked.set()
            await answer.wait()
            await super().pause(seconds)

    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path) as control:
        await control.pause(5.0)
        node = Slow()
        await control.add_node(node, kind="far")
        await asyncio.wait_for(asked.wait(), 30)
        await control.resume("7")
        answer.set()
        await until(lambda: node.paused and not node.held)
        assert node.versions == ["7", "7"]


@pytest.mark.parametrize("version", ["7", None])
async def test_a_node_that_did_not_hear_that_it_may_go_on_is_told_again(tmp_path: Path, version: str | None) -> None:
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path, node_timeout=60) as control:
        node, other = SimulatedNode("n1"), SimulatedNode("n2")
        for one in (node, other):
            await control.add_node(one, kind="far")
        await until(lambda: all(member.attached for member in control.roster.members.values()))
        await control.pause(5.0)
        node.silent = True
        with pytest.raises(NodeError, match="n1: it is silent"):
            await control.resume(version)
        node.silent = False
        await until(lambda: not node.held)
        assert [node.versions, other.versions] == [[version]] * 2


async def test_nodes_that_paused_before_the_service_came_stay_so(tmp_path: Path) -> None:
    """A trainer of before may be replacing weights; it resumes them."""
    async with control_plane(f"sqlite:///{tmp_path}/polar.db", tmp_path) as control:
        node = SimulatedNode()
        node.held = True
        await control.add_node(node, kind="far")
        await until(lambda: control.roster.members["n1"].attached)
        assert node.held and not node.versions
        await control.resume()
        assert not node.held
