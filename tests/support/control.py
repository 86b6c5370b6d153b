# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A control plane with simulated nodes, for tests that say what happens when."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.records import NodeRecord, SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.nodes.base import Node
from nemo_gym_polar.rollouts.task import SessionStatus, TaskRequest
from tests.support.faulty_store import FaultyStore
from tests.support.simulated_node import SimulatedNode

QUICK = {"node_timeout": 0.2, "report_wait": 0.2, "retry_first": 0.01, "retry_most": 0.05}


@contextlib.asynccontextmanager
async def control_plane(
    url: str,
    directory: Path,
    connect: Callable[[NodeRecord], Awaitable[Node | None]] | None = None,
    **settings: Any,
) -> AsyncIterator[Coordinator]:
    made = ControlSettings(directory=directory, **{**QUICK, **settings})
    async with FaultyStore(url) as store, Coordinator(store, made, connect) as control:
        yield control


def a_task(task_id: str = "t", samples: int = 1, **fields: Any) -> TaskRequest:
    return TaskRequest(task_id=task_id, instruction="Do it.", num_samples=samples, **fields)


async def until[T](condition: Callable[[], T | Awaitable[T]], within: float = 60.0) -> T:
    """Wait for what is to become true; what it then is."""
    async with asyncio.timeout(within):
        while True:
            found = condition()
            found = await found if inspect.isawaitable(found) else found
            if found:
                return found
            await asyncio.sleep(0.01)


async def ended(control: Coordinator, task_id: str = "t") -> TaskRecord:
    async def found() -> TaskRecord | None:
        task = await control.task(task_id)
        return task if task.ended is not None else None

    task = await until(found)
    assert task
    return task


async def current(control: Coordinator, task_id: str = "t") -> list[SessionRecord]:
    """The attempts that count, by sample."""
    return [record for record in await control.sessions(task_id) if record.current]


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


async def attempts(control: Coordinator) -> list[SessionRecord]:
    """All of them, those that were given up too."""
    return await control.sessions("t")
