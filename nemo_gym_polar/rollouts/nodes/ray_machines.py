# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster that runs already: its machines, and the actors on them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import ray
import ray.util
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from nemo_gym_polar.rollouts.nodes.base import NodeError
from nemo_gym_polar.rollouts.nodes.ray_actor import NodeActor
from nemo_gym_polar.rollouts.nodes.ray_calls import in_turn, keep_signals
from nemo_gym_polar.rollouts.nodes.ray_settings import AUTO, RaySettings

REACHED = 10.0  # seconds for a connection to the cluster's head


@dataclass(frozen=True, slots=True)
class Machine:
    """`id` is Ray's, new each time that the machine joins."""

    id: str
    address: str
    hostname: str


@contextlib.asynccontextmanager
async def connected(settings: RaySettings) -> AsyncIterator[None]:
    """Raises `NodeError` where there is no such cluster; none is ever started here."""
    if ray.is_initialized():
        raise NodeError("this process is connected to a Ray cluster already; it can use one at a time")
    try:
        await _reach(settings.address)
        await in_turn(_connect, settings)
    except (OSError, ValueError, RuntimeError, RayError) as error:
        said = " ".join(str(error).split()) or "no answer"
        raise NodeError(f"ray={settings.address}: {said}; start the cluster with `ray start`") from error
    keep_signals()
    try:
        yield
    finally:
        await in_turn(ray.shutdown)


async def _reach(address: str) -> None:
    """Ray itself would try an address where nobody is for 20 minutes."""
    if address != AUTO:
        host, _, port = address.rpartition(":")
        async with asyncio.timeout(REACHED):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.close()


def _connect(settings: RaySettings) -> None:
    """Not in the main thread, where Ray would put its own handler for SIGTERM in the place of the service's."""
    logging.getLogger("ray._private.worker").setLevel(logging.ERROR)  # it would remark on that
    os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "3")  # tries, where «auto» finds a cluster that is gone
    ray.init(
        address=settings.address,
        namespace=settings.namespace,
        log_to_driver=False,
        configure_logging=False,
        runtime_env={"py_executable": settings.python} if settings.python else None,
    )


async def machines(settings: RaySettings) -> list[Machine]:
    """Those that live and are to have a node. Raises `NodeError` where the cluster doesn't say."""
    try:
        found = await in_turn(ray.nodes)
    except (RayError, RuntimeError, OSError) as error:
        raise NodeError(f"the cluster doesn't answer: {error}") from error
    return [
        Machine(one["NodeID"], one["NodeManagerAddress"], one["NodeManagerHostname"])
        for one in found
        if one["Alive"] and fits(one["Resources"], settings)
    ]


def fits(resources: dict[str, float], settings: RaySettings) -> bool:
    wanted = settings.resource
    return resources.get("CPU", 0.0) >= settings.cpus and (wanted is None or resources.get(wanted, 0.0) > 0)


async def place(machine: Machine, settings: RaySettings) -> tuple[str, ActorHandle[Any]]:
    """An actor on that machine and no other. It outlives this process: the next service finds it by its name."""
    node_id = new_node_id(machine)
    options = {
        "name": node_id,
        "namespace": settings.namespace,
        "lifetime": "detached",
        "num_cpus": settings.cpus,
        "max_restarts": 0,
        "max_task_retries": 0,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(machine.id, soft=False),
    }
    made: Any = ray.remote(NodeActor)
    actor: ActorHandle[Any] = await in_turn(lambda: made.options(**options).remote(node_id))
    return node_id, actor


def new_node_id(machine: Machine) -> str:
    host = re.sub(r"[^A-Za-z0-9.-]", "-", machine.hostname).strip("-.") or "machine"
    return f"{host[:64]}-{uuid.uuid4().hex[:8]}"


async def find(node_id: str, settings: RaySettings) -> ActorHandle[Any] | None:
    """None for an actor that is gone."""
    try:
        return await in_turn(ray.get_actor, node_id, settings.namespace)
    except ValueError:
        return None


async def names() -> list[str]:
    """The actors that this namespace has."""
    return await in_turn(ray.util.list_named_actors)
