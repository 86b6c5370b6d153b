# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The service's process: store, control plane, callbacks, API, and a node of its own if it has an engine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import aiohttp

from nemo_gym_polar.rollouts.api.app import make_app
from nemo_gym_polar.rollouts.api.nodes import KIND as HTTP
from nemo_gym_polar.rollouts.callbacks.delivery import Delivery, contents_of
from nemo_gym_polar.rollouts.control.coordinator import LOCAL, Coordinator
from nemo_gym_polar.rollouts.control.errors import UnknownNodeError
from nemo_gym_polar.rollouts.control.records import NodeRecord
from nemo_gym_polar.rollouts.hosting.local import hosted_node
from nemo_gym_polar.rollouts.hosting.settings import HostSettings
from nemo_gym_polar.rollouts.hosting.stopping import Stop
from nemo_gym_polar.rollouts.listening import listening
from nemo_gym_polar.rollouts.nodes.base import Node, NodeError
from nemo_gym_polar.rollouts.nodes.http import HttpNode, make_client
from nemo_gym_polar.rollouts.retention.pruning import Retention
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.store.store import Store

if TYPE_CHECKING:
    from nemo_gym_polar.rollouts.nodes.ray_cluster import RayCluster

logger = logging.getLogger(__name__)


async def serve_service(settings: HostSettings, say: Callable[[str], None] = print) -> None:
    """Until SIGINT or SIGTERM, and then until its own node's sessions have ended, within bounds. Raises `EngineError`,
    `StoreError`, `OSError` or `NodeError` for what keeps it from starting."""
    stop = Stop()
    async with AsyncExitStack() as stack:
        with stop.starting():
            store = await stack.enter_async_context(Store(settings.store_url))
            hosted = None
            if settings.engine and settings.ray is None:
                hosted = await stack.enter_async_context(hosted_node(settings, settings.engine))
            nodes = Nodes(await stack.enter_async_context(make_client(settings.token)))
            cluster = await stack.enter_async_context(ray_cluster(settings)) if settings.ray is not None else None
            nodes.cluster = cluster
            control = Coordinator(store, settings.control_settings(), connect=nodes.find)
            await stack.enter_async_context(control)
            if hosted:
                await control.add_node(hosted.node, kind=LOCAL, url=hosted.url, metadata=workers(settings))
            if cluster:
                await stack.enter_async_context(cluster.supply(control))
            contents = contents_of(control, traces=settings.callbacks.traces)
            await stack.enter_async_context(Delivery(control, settings.callbacks, contents))
            await stack.enter_async_context(Retention(control, settings.retention))
            app = make_app(control, settings.api, nodes.connect, settings.token)
            url = await stack.enter_async_context(listening(app, settings.api.host, settings.api.port))
        say(f"rollout service on {url}; its API is described at {url}/docs")
        await stop.asked.wait()
        if hosted:
            await finish(control, hosted.node, stop, settings.node.shutdown_grace)


async def finish(control: Coordinator, node: Node, stop: Stop, seconds: float) -> None:
    """Let what the service's own node has come to its end."""
    try:
        await control.drain(node.id)
    except UnknownNodeError:  # it was removed, and its sessions were given up
        return
    except StoreError as error:
        logger.error("%s", error)
    await stop.emptied(node, seconds)


class Nodes:
    """Makes nodes from addresses and from records that a service before this one left."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self.client = client
        self.cluster: RayCluster | None = None

    def connect(self, node_id: str, url: str) -> Node:
        return HttpNode(node_id, url, self.client)

    async def find(self, record: NodeRecord) -> Node | None:
        if record.kind == HTTP and record.url:
            return self.connect(record.node_id, record.url)
        return await self.cluster.find(record) if self.cluster else None


def workers(settings: HostSettings) -> dict[str, int]:
    """What a node is registered with."""
    own = settings.rollout_settings()
    return {f"max_{stage}_workers": getattr(own, f"{stage}_workers") for stage in ("init", "run", "postrun")}


def ray_cluster(settings: HostSettings) -> RayCluster:
    """Ray is an extra, and slow to import."""
    try:
        from nemo_gym_polar.rollouts.nodes.ray_cluster import RayCluster
    except ModuleNotFoundError as error:
        raise NodeError(f"ray: there is no {error.name} here: pip install 'nemo-gym-polar[ray]'") from error
    from nemo_gym_polar.rollouts.nodes.ray_settings import NodeSettings, RaySettings

    assert settings.engine
    node = NodeSettings(
        engine=settings.engine, directory=settings.directory, gateway=settings.gateway, rollouts=settings.rollouts
    )
    return RayCluster(RaySettings.model_validate(settings.ray), node)
