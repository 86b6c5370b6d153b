# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway with its stages in this process."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.gateway import Gateway, Server, serve
from nemo_gym_polar.rollouts.hosting.settings import HostSettings
from nemo_gym_polar.rollouts.nodes.local import LocalNode
from nemo_gym_polar.rollouts.nodes.weights import GatewayWeights


@dataclass(frozen=True, slots=True)
class Hosted:
    """`url` is where others reach it."""

    node: LocalNode
    gateway: Gateway
    server: Server
    url: str


@contextlib.asynccontextmanager
async def hosted_node(
    settings: HostSettings, engine: EngineSettings, make_app: Callable[[Gateway, NodeBox], FastAPI] | None = None
) -> AsyncIterator[Hosted]:
    """Ends every session when the block ends. Raises `EngineError` where no engine answers, `OSError` for a port."""
    options = settings.node
    limits = settings.gateway_settings()
    await asyncio.to_thread(limits.journals.mkdir, parents=True, exist_ok=True)
    mode = await asyncio.to_thread(make_engine, engine)
    box = NodeBox()
    # A socket's path may have 107 bytes, so it doesn't lie in the run's directory.
    with tempfile.TemporaryDirectory(prefix="polar-") as sockets:
        async with Gateway(mode, limits) as gateway:
            await gateway.mode.engine.check()
            app = make_app(gateway, box) if make_app else None
            door = Path(sockets) / "gateway.sock"
            async with serve(gateway, host=options.host, port=options.port, uds=door, app=app) as server:
                node = LocalNode(
                    options.node_id, gateway, server, settings.rollout_settings(), weights=GatewayWeights(gateway)
                )
                box.node = node
                try:
                    yield Hosted(node, gateway, server, (options.public_url or server.url).rstrip("/"))
                finally:
                    await node.close()


class NodeBox:
    """The node of an app that is made before it."""

    node: LocalNode
