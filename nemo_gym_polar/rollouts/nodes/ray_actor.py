# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What runs on a machine of a Ray cluster: one actor with a gateway on the machine's address, around a `LocalNode`.

Ray starts an actor anew without what it knew, and a node that has forgotten its sessions would answer as if there had
been none. So Ray restarts no node: `RayCluster` puts a new one, with a new id, in the place of one that died.

Settings, and the secrets in them, come with `open` and not at creation: Ray shows what an actor was created with.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ray
import ray.util

from nemo_gym_polar import __version__
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.factory import make_engine
from nemo_gym_polar.gateway import Gateway, serve
from nemo_gym_polar.rollouts.nodes.base import NodeError
from nemo_gym_polar.rollouts.nodes.local import LocalNode
from nemo_gym_polar.rollouts.nodes.ray_settings import NodeSettings
from nemo_gym_polar.rollouts.nodes.weights import GatewayWeights

Method = Literal["start", "cancel", "reports", "acknowledge", "load", "drain", "pause", "resume"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class About:
    """Where a node is and what it runs. `machine` is Ray's id of its machine."""

    machine: str
    address: str
    url: str
    pid: int
    digest: str


class NodeActor:
    """`open` first; then `call` passes on the calls of `Node`."""

    def __init__(self, node_id: str) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        self.id = node_id
        self.about: About | None = None
        self._node: LocalNode | None = None
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._heard = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    async def open(self, settings: NodeSettings, version: str) -> About:
        """Listen. Once it is open it stays as it is. Raises `NodeError` with what is wrong here."""
        self._heard = time.monotonic()
        if version != __version__:
            raise NodeError(
                f"this machine has nemo-gym-polar {__version__} and the service {version}: install the same"
            )
        async with self._opening:
            if self.about is None:
                try:
                    self.about = await self._open(settings)
                except (ValueError, OSError, EngineError) as error:
                    await self._stack.aclose()
                    raise NodeError(str(error)) from None
            return self.about

    async def _open(self, settings: NodeSettings) -> About:
        directory = settings.directory / "nodes" / self.id
        gateway_settings = settings.gateway_at(directory)
        await asyncio.to_thread(gateway_settings.journals.mkdir, parents=True, exist_ok=True)
        engine = await asyncio.to_thread(make_engine, settings.engine)
        gateway = await self._stack.enter_async_context(Gateway(engine, gateway_settings))
        await gateway.mode.engine.check()
        # A socket's path may have 107 bytes, so it lies in the system's own temporary directory.
        sockets = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="polar-"))
        address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        uds = Path(sockets) / "gateway.sock"
        server = await self._stack.enter_async_context(serve(gateway, host=address, port=settings.port, uds=uds))
        rollouts = settings.rollouts_at(directory)
        self._node = LocalNode(self.id, gateway, server, rollouts, weights=GatewayWeights(gateway))
        self._stack.push_async_callback(self._node.close)
        self._heard = time.monotonic()  # to open may have taken longer than a silence may last
        self._watch = asyncio.create_task(self._until_abandoned(settings.abandoned_after))
        machine = ray.get_runtime_context().get_node_id()
        logger.info("node %s listens at %s", self.id, server.url)
        return About(machine, address, server.url, os.getpid(), settings.digest)

    async def where(self) -> About | None:
        """None before it is open."""
        self._heard = time.monotonic()
        return self.about

    async def call(self, method: Method, *arguments: Any) -> Any:
        self._heard = time.monotonic()
        if self._node is None:
            raise NodeError(f"node {self.id} is not open yet")
        return await getattr(self._node, method)(*arguments)

    async def close(self) -> None:
        """End every session and free all that they held."""
        if self._watch:
            self._watch.cancel()
        await self._stack.aclose()

    async def _until_abandoned(self, seconds: float) -> None:
        own = ray.get_runtime_context().current_actor
        left = seconds
        while left > 0:
            await asyncio.sleep(left)
            left = self._heard + seconds - time.monotonic()
        logger.warning("no service has asked node %s for %.0f s; it ends", self.id, seconds)
        await self._stack.aclose()
        await asyncio.to_thread(ray.kill, own)
