# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One node on every machine of a Ray cluster, for as long as the service wants them.

async with (
    RayCluster(RaySettings(), NodeSettings(engine=engine, directory=Path("polar"))) as cluster,
    Coordinator(store, settings, connect=cluster.find) as control,
    cluster.supply(control),
): …

A machine that joins gets a node; one that leaves takes its node with it. A node that dies is replaced by another one
with a new id, and the control plane moves or retries its sessions. A node that was drained or removed through the
control plane is ended when it is empty, and its machine gets no other until it joins anew or the service starts again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.errors import UnknownNodeError
from nemo_gym_polar.rollouts.control.member import DRAINING
from nemo_gym_polar.rollouts.control.records import NodeRecord
from nemo_gym_polar.rollouts.nodes import ray_machines
from nemo_gym_polar.rollouts.nodes.base import NodeError, NodeLostError
from nemo_gym_polar.rollouts.nodes.ray_actor import About
from nemo_gym_polar.rollouts.nodes.ray_machines import Machine
from nemo_gym_polar.rollouts.nodes.ray_node import RayNode
from nemo_gym_polar.rollouts.nodes.ray_settings import NodeSettings, RaySettings

KIND = "ray"
LONGEST_PAUSE = 60.0  # seconds between two attempts to start a node on a machine

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Place:
    """What is on one machine. `retired`: it gets no other node. `failures` in a row, the next attempt at `again`."""

    machine: Machine
    node: RayNode | None = None
    retired: bool = False
    outdated: bool = False
    failures: int = 0
    again: float = 0.0
    tending: asyncio.Task[None] | None = field(default=None, repr=False)


class RayCluster:
    """Enter it to connect; nodes come with `supply`. Raises `NodeError` where there is no cluster."""

    def __init__(self, settings: RaySettings, node_settings: NodeSettings) -> None:
        self.settings = settings
        self.node_settings = node_settings
        self._places: dict[str, Place] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(ray_machines.connected(self.settings))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def find(self, record: NodeRecord) -> RayNode | None:
        """The node of a record that a service before this one left; None for one of another kind."""
        return await self._find(record.node_id) if record.kind == KIND else None

    async def _find(self, node_id: str) -> RayNode:
        return RayNode(node_id, await ray_machines.find(node_id, self.settings), self.settings.call_timeout)

    @contextlib.asynccontextmanager
    async def supply(self, control: Coordinator) -> AsyncIterator[None]:
        """Keep a node on every machine until the block ends. Then nodes that have nothing left to report are ended; the
        others go on, for the next service to find them."""
        for node_id in await ray_machines.names():
            await self._adopt(control, await self._find(node_id))
        watching = control.roster.spawn(self._watch(control))  # should it end by itself, the service says so
        try:
            yield
        finally:
            working = [watching, *(place.tending for place in self._places.values() if place.tending)]
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            await asyncio.gather(*(self._end_idle(control, place) for place in self._places.values()))

    async def _adopt(self, control: Coordinator, node: RayNode) -> None:
        """A node that runs already, with the settings that it was started with. Others than ours: it is drained."""
        try:
            about = await node.where()
            if about is None:  # the service before this one ended in between
                return await node.kill()
            place = Place(Machine(about.machine, about.address, ""), node, outdated=about.digest != self.digest)
            self._places[about.machine] = place
            if node.id not in {record.node_id for record in control.nodes()}:
                await self._add(control, node, about)
            if place.outdated:
                logger.warning("node %s was started with other settings; it is drained and replaced", node.id)
                await node.drain()
                with contextlib.suppress(UnknownNodeError):  # the control plane is still about to find it by its record
                    await control.drain(node.id)
        except NodeError as error:
            logger.warning("node %s can't be taken over: %s", node.id, error)
        return None

    async def _add(self, control: Coordinator, node: RayNode, about: About) -> None:
        own = self.node_settings.rollouts_at(self.node_settings.directory)
        workers = {f"max_{stage}_workers": getattr(own, f"{stage}_workers") for stage in ("init", "run", "postrun")}
        metadata = {"machine": about.machine, "address": about.address, "pid": about.pid, **workers}
        await control.add_node(node, kind=KIND, url=about.url, metadata=metadata)

    @property
    def digest(self) -> str:
        return self.node_settings.digest

    async def _watch(self, control: Coordinator) -> None:
        while True:
            try:
                await self._look(control)
            except NodeError as error:
                logger.warning("%s", error)
            await asyncio.sleep(self.settings.watch)

    async def _look(self, control: Coordinator) -> None:
        """Tend every machine, side by side: one that is slow to start a node holds up no other."""
        living = {machine.id: machine for machine in await ray_machines.machines(self.settings)}
        for gone in self._places.keys() - living.keys():
            place = self._places.pop(gone)
            if place.tending:
                place.tending.cancel()
        for name, machine in living.items():
            place = self._places.setdefault(name, Place(machine))
            if place.tending is None or place.tending.done():
                place.machine = machine
                place.tending = asyncio.create_task(self._tend(control, place))

    async def _tend(self, control: Coordinator, place: Place) -> None:
        try:
            if place.node is None:
                await self._start(control, place)
            else:
                await self._check(control, place, place.node)
        except NodeError as error:
            logger.warning("machine %s: %s", place.machine.address, error)

    async def _start(self, control: Coordinator, place: Place) -> None:
        if place.retired or time.monotonic() < place.again:
            return
        node_id, actor = await ray_machines.place(place.machine, self.settings)
        node = RayNode(node_id, actor, self.settings.call_timeout)
        try:
            about = await node.open(self.node_settings, self.settings.start_timeout)
            place.node, place.failures = node, 0
            await self._add(control, node, about)
        except BaseException:
            place.node = None
            place.failures += 1
            place.again = time.monotonic() + min(LONGEST_PAUSE, self.settings.watch * 2**place.failures)
            await node.kill()
            raise

    async def _check(self, control: Coordinator, place: Place, node: RayNode) -> None:
        record = next((one for one in control.nodes() if one.node_id == node.id), None)
        if record is None:
            await self._gone(place, node)
        elif record.state == DRAINING and await is_empty(node):
            place.node, place.retired = None, not place.outdated
            await end(control, node)

    async def _gone(self, place: Place, node: RayNode) -> None:
        """The control plane knows it no longer: it died, or somebody removed it."""
        try:
            await node.where()
        except NodeLostError:
            place.node = None
        else:
            place.node, place.retired = None, True
            await node.close()

    async def _end_idle(self, control: Coordinator, place: Place) -> None:
        if place.node is None:
            return
        try:
            if await is_empty(place.node):
                await end(control, place.node)
        except NodeError as error:
            logger.info("node %s is left: %s", place.node.id, error)


async def is_empty(node: RayNode) -> bool:
    """It runs nothing, and nothing that it had to say is unheard."""
    return not (await node.load()).sessions and not await node.reports(0, 0.0)


async def end(control: Coordinator, node: RayNode) -> None:
    with contextlib.suppress(UnknownNodeError):
        await control.remove(node.id)
    await node.close()
