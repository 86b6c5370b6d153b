# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A rollout service on a Ray cluster, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.records import NodeRecord, SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.nodes import ray_machines
from nemo_gym_polar.rollouts.nodes.ray_cluster import RayCluster
from nemo_gym_polar.rollouts.nodes.ray_node import RayNode
from nemo_gym_polar.rollouts.nodes.ray_settings import NodeSettings, RaySettings
from nemo_gym_polar.rollouts.store.store import Store
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import engine_settings
from tests.support.ray_hosts import Hosts

PATIENCE = 90.0  # seconds for what takes two on an idle machine

WAIT = "until test -e {}; do sleep 0.1; done\n"  # a harness that goes on once there is such a file


@dataclass(slots=True)
class RayStand:
    """What one test's services share: the cluster, the engine and a directory. `namespace` is the test's own."""

    hosts: Hosts
    engine: FakeEngine
    directory: Path
    namespace: str = field(default_factory=lambda: f"test-{uuid.uuid4().hex[:8]}")

    def node_settings(self, **fields: Any) -> NodeSettings:
        rollouts = {"run_workers": 2, "ready_buffer": 1}
        given = {"engine": engine_settings(self.engine), "directory": self.directory, "rollouts": rollouts}
        return NodeSettings.model_validate({**given, **fields})

    def ray_settings(self, **fields: Any) -> RaySettings:
        return RaySettings(address=self.hosts.address, namespace=self.namespace, watch=0.3, **fields)

    @contextlib.asynccontextmanager
    async def service(
        self,
        nodes: int = 0,
        *,
        ray_fields: Mapping[str, Any] | None = None,
        node_fields: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AsyncIterator[Coordinator]:
        """One life of a service; the next one goes on with the same store. Begins when `nodes` nodes are ready."""
        cluster = RayCluster(self.ray_settings(**ray_fields or {}), self.node_settings(**node_fields or {}))
        given = {"node_timeout": 30.0, "report_wait": 0.5, **settings}
        control_settings = ControlSettings(directory=self.directory, **given)
        async with (
            cluster,
            Store(f"sqlite:///{self.directory}/polar.db") as store,
            Coordinator(store, control_settings, connect=cluster.find) as control,
            cluster.supply(control),
        ):
            await until(lambda: len(ready(control)) >= nodes)
            yield control

    async def end(self) -> None:
        """End what the services have left, and wait for it: the machines have room for one node each."""
        settings = self.ray_settings()
        async with ray_machines.connected(settings):
            left = [RayNode(name, await ray_machines.find(name, settings)) for name in await ray_machines.names()]
            await asyncio.gather(*(node.close() for node in left))


def ready(control: Coordinator) -> list[NodeRecord]:
    return [node for node in control.nodes() if node.state == "ready" and node.capacity]


async def until(true: Callable[[], bool], within: float = PATIENCE) -> None:
    async with asyncio.timeout(within):
        while not true():  # noqa: ASYNC110 - what it waits for is in other processes
            await asyncio.sleep(0.05)


async def ended(control: Coordinator, task_id: str, within: float = PATIENCE) -> TaskRecord:
    async with asyncio.timeout(within):
        async for _ in control.events():
            record = await control.task(task_id)
            if record.ended is not None:
                return record
    raise AssertionError("events end only with the service")


async def running(control: Coordinator, task_id: str, status: str = "RUNNING", number: int = 1) -> list[SessionRecord]:
    """The sessions with that status, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = [one for one in await control.sessions(task_id) if one.current and one.status == status]
            if len(found) >= number:
                return found
            await asyncio.sleep(0.05)
