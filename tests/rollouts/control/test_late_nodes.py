# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a node that comes late is told of the policy's weights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.store.store import Store
from tests.support.simulated_node import SimulatedNode


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - the control plane asks when it does
            await asyncio.sleep(0.01)


async def test_a_node_that_comes_during_a_pause_is_paused_and_resumed_with_the_others(tmp_path: Path) -> None:
    first, second, third = SimulatedNode("first"), SimulatedNode("second"), SimulatedNode("third")
    settings = ControlSettings(directory=tmp_path, report_wait=0.1)
    async with Store(f"sqlite:///{tmp_path}/polar.db") as store, Coordinator(store, settings) as control:
        await control.add_node(first, kind="simulated")
        await control.pause(5.0)
        await control.add_node(second, kind="simulated")
        await until(lambda: bool(second.paused))
        assert second.versions == []
        await control.resume("7")
        await control.add_node(third, kind="simulated")
        await until(lambda: bool(third.versions))
        assert [node.versions for node in (first, second, third)] == [["7"]] * 3
        assert [bool(node.paused) for node in (first, second, third)] == [True, True, False]
