# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Both NeMo Gym servers in this process, on real ports, talking through NeMo Gym's own client; no Ray, no CLI."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
from fastapi import FastAPI

from nemo_gym_polar.environment.result import Result
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import engine_settings


@dataclass(slots=True)
class Gym:
    """`run` is what NeMo Gym and NeMo RL do with a row."""

    client: aiohttp.ClientSession
    agent_url: str
    resources: Stoppable

    async def run(self, row: dict[str, Any]) -> Result:
        async with self.client.post(f"{self.agent_url}/run", json=row) as reply:
            assert reply.status == 200, await reply.text()
            made: Result = await reply.json()
            return made


@dataclass(slots=True)
class Stoppable:
    server: uvicorn.Server
    task: asyncio.Task[None]

    async def stop(self) -> None:
        self.server.should_exit = True
        await self.task


@contextlib.asynccontextmanager
async def gym_servers(engine: FakeEngine, directory: Path, **agent: Any) -> AsyncIterator[Gym]:
    from nemo_gym.config_types import BaseServerConfig
    from nemo_gym.server_utils import GlobalAIOHTTPAsyncClientConfig, ServerClient, set_global_aiohttp_client
    from omegaconf import OmegaConf

    from nemo_gym_polar.environment.agent import PolarAgent, PolarAgentConfig
    from nemo_gym_polar.environment.resources import PolarResourcesServer, PolarResourcesServerConfig

    with _listen() as resources_port, _listen() as agent_port:
        common = {"host": "127.0.0.1", "entrypoint": "app.py"}
        resources = common | {"port": resources_port.getsockname()[1], "name": "polar", "domain": "coding"}
        resources |= {
            "engine": engine_settings(engine).model_dump(),
            "directory": str(directory),
            "context_tokens": 2048,
        }
        ref = {"type": "resources_servers", "name": "polar"}
        agent = common | {"port": agent_port.getsockname()[1], "name": "polar_agent", "resources_server": ref, **agent}
        agent.setdefault("rollouts", {"directory": str(directory)})
        config = OmegaConf.create({"polar": {"resources_servers": {"polar": resources}}})
        head = BaseServerConfig(host="127.0.0.1", port=1)
        client = ServerClient(head_server_config=head, global_config_dict=config)
        wire = set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
        servers = (
            PolarResourcesServer(config=PolarResourcesServerConfig(**resources), server_client=client),
            PolarAgent(config=PolarAgentConfig(**agent), server_client=client),
        )
        async with (
            _gym_client(wire),
            _serving(servers[0].setup_webserver(), resources_port) as running,
            _serving(servers[1].setup_webserver(), agent_port),
            aiohttp.ClientSession() as session,
        ):
            yield Gym(session, f"http://127.0.0.1:{agent['port']}", running)


@contextlib.asynccontextmanager
async def _gym_client(client: aiohttp.ClientSession) -> AsyncIterator[None]:
    """NeMo Gym keeps one client per process; the next test has another event loop."""
    from nemo_gym import server_utils

    try:
        yield
    finally:
        await client.close()
        server_utils._GLOBAL_AIOHTTP_CLIENT = None


@contextlib.contextmanager
def _listen() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@contextlib.asynccontextmanager
async def _serving(app: FastAPI, listener: socket.socket) -> AsyncIterator[Stoppable]:
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]  # pytest's signals are not its own
    task = asyncio.create_task(server.serve([listener]))
    while not server.started:
        assert not task.done(), task.exception()
        await asyncio.sleep(0.01)
    running = Stoppable(server, task)
    try:
        yield running
    finally:
        await running.stop()
