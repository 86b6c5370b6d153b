# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node's process: a gateway and its stages, for a service somewhere else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

from fastapi import APIRouter, Depends, FastAPI

from nemo_gym_polar.gateway import Gateway
from nemo_gym_polar.gateway.app import make_app
from nemo_gym_polar.gateway.updates import update_router
from nemo_gym_polar.rollouts.api.guard import BodyLimit, make_guard
from nemo_gym_polar.rollouts.api.refusals import handle_refusals
from nemo_gym_polar.rollouts.hosting.local import Hosted, NodeBox, hosted_node
from nemo_gym_polar.rollouts.hosting.membership import Membership
from nemo_gym_polar.rollouts.hosting.service import workers
from nemo_gym_polar.rollouts.hosting.settings import HostSettings
from nemo_gym_polar.rollouts.hosting.stopping import Stop
from nemo_gym_polar.rollouts.nodes import app as protocol
from nemo_gym_polar.rollouts.nodes import sessions


async def serve_node(settings: HostSettings, say: Callable[[str], None] = print) -> None:
    """Until SIGINT or SIGTERM, and then until its sessions have ended, within bounds."""
    assert settings.engine and settings.join
    stop = Stop()
    async with AsyncExitStack() as stack:
        node = hosted_node(settings, settings.engine, lambda gateway, box: node_app(gateway, box, settings))
        with stop.starting():
            hosted = await stack.enter_async_context(node)
        about, beat = registration(hosted, settings), settings.node.heartbeat
        place = Membership(settings.join, secret(settings), about, beat, stop.asked)
        member = await stack.enter_async_context(place)
        say(f"node {hosted.node.id} on {hosted.url}, for the service at {member.service}")
        await stop.asked.wait()
        await hosted.node.drain()
        await member.leave(remove=False)
        await stop.emptied(hosted.node, settings.node.shutdown_grace)
        await member.leave(remove=True)


def node_app(gateway: Gateway, box: NodeBox, settings: HostSettings) -> FastAPI:
    """The gateway's app, with the node protocol and the reference system's session endpoints behind the token."""
    guard = [Depends(make_guard(settings.token))]
    routers = [protocol.make_router(lambda: box.node), sessions.make_router(lambda: box.node, gateway)]
    outer = APIRouter()
    for router in routers:
        outer.include_router(router, dependencies=guard)
    app = make_app(gateway, outer, update_router(gateway, admin_token=secret(settings)))
    handle_refusals(app)
    app.add_middleware(BodyLimit, limit=settings.api.max_body_bytes)
    return app


def secret(settings: HostSettings) -> str | None:
    return settings.token.get_secret_value() if settings.token else None


def registration(hosted: Hosted, settings: HostSettings) -> dict[str, object]:
    beat = max(1, round(settings.node.heartbeat))
    about = {"node_id": hosted.node.id, "gateway_url": hosted.url, "heartbeat_interval_seconds": beat}
    return {**about, **workers(settings)}
