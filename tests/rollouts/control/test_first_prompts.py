# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import logging
from pathlib import Path

import pytest

from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.control import a_task, control_plane, ended, until
from tests.support.simulated_node import SimulatedNode


@pytest.mark.parametrize(
    ("prompts", "odd"),
    [
        (["x", "x", "x"], None),
        (["x", "y", "y"], [0]),
        (["x", "y", "z"], [1, 2]),
        ([None, "y", "y"], None),
        ([None, None, None], None),
        (["x", None, "y"], [2]),
    ],
)
async def test_prompts_are_compared_when_the_group_has_ended(
    store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, prompts: list[str | None], odd: list[int] | None
) -> None:
    nodes = [SimulatedNode(name, capacity=1) for name in ("n1", "n2", "n3")]
    async with control_plane(store_url, tmp_path) as control:
        for node in nodes:
            await control.add_node(node, kind="far")
        await control.submit(a_task(samples=3))
        await until(lambda: all(node.running for node in nodes))
        for node in nodes:
            ((name, work),) = node.running.items()
            node.first_prompt = prompts[work.sample]
            node.end(name, SessionStatus.TIMEOUT if work.sample == 1 else SessionStatus.COMPLETED)
        assert (await ended(control)).first_prompt_mismatches == odd
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told == (
        [] if odd is None else [f"task t: samples that begin with another prompt than their group: {shown(odd)}"]
    )


def shown(odd: list[int]) -> str:
    return ", ".join(map(str, odd))


async def test_a_service_that_was_started_anew_knows_the_prompts_of_before(store_url: str, tmp_path: Path) -> None:
    node = SimulatedNode()
    async with control_plane(store_url, tmp_path) as control:
        await control.add_node(node, kind="far")
        await control.submit(a_task(samples=2))
        await until(lambda: len(node.running) == 2)
        first, second = (work.session_id for work in sorted(node.started, key=lambda work: work.sample))
        node.first_prompt = "x"
        node.end(first)
        await until(lambda: first in node.acknowledged)

    async def again(_: object) -> SimulatedNode:
        return node

    async with control_plane(store_url, tmp_path, again) as control:
        node.first_prompt = "y\0"  # a node may say anything
        node.end(second)
        assert (await ended(control)).first_prompt_mismatches == [1]
