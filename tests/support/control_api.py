# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A control plane on a real port, with a node that a test moves by hand."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import SecretStr

from nemo_gym_polar.rollouts.api.app import make_app
from nemo_gym_polar.rollouts.api.settings import ApiSettings
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.listening import listening
from nemo_gym_polar.rollouts.nodes.base import Node
from nemo_gym_polar.rollouts.store.store import Store
from tests.support.simulated_node import SimulatedNode
from tests.support.waiting import until

TOKEN = "hush-hush"


@dataclass(slots=True)
class Desk:
    """A service, its node, and a client that has the token."""

    url: str
    control: Coordinator
    node: SimulatedNode
    client: aiohttp.ClientSession
    joined: dict[str, SimulatedNode]

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        async with self.client.request(method, self.url + path, **options) as reply:
            return reply.status, await reply.json()

    async def started(self, count: int) -> None:
        """Once its node has begun so many sessions."""
        await until(lambda: len(self.node.started) >= count)


@contextlib.asynccontextmanager
async def desk(directory: Path, *, token: str | None = TOKEN, capacity: int = 4, **fields: Any) -> AsyncIterator[Desk]:
    """`fields` are the control plane's settings, and `api` those of its HTTP side."""
    api, secret = ApiSettings(**fields.pop("api", {})), SecretStr(token) if token else None
    settings = ControlSettings(directory=directory, report_wait=0.2, retry_first=0.02, retry_most=0.1, **fields)
    joined: dict[str, SimulatedNode] = {}

    def connect(node_id: str, url: str) -> Node:
        joined[node_id] = SimulatedNode(node_id)
        return joined[node_id]

    async with (
        Store(f"sqlite:///{directory}/polar.db") as store,
        Coordinator(store, settings) as control,
        listening(make_app(control, api, connect, secret), "127.0.0.1", 0) as url,
        aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as client,
    ):
        node = SimulatedNode(capacity=capacity)
        await control.add_node(node, kind="simulated")
        yield Desk(url, control, node, client, joined)


def task(task_id: str = "one", **fields: Any) -> dict[str, Any]:
    """As JSON; its harness is a command."""
    agent = {"harness": "shell", "settings": {"command": "true"}}
    return {"task_id": task_id, "instruction": "Do nothing.", "agent": agent, **fields}
