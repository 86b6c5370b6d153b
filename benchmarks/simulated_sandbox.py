# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A sandbox without a process in it, and an agent that lives in it: they take the time that real ones take.

What they ask of the gateway is real: Chat Completions over HTTP with the session's secret, a growing history, a tool
result after each answer. So thousands of sessions can run where thousands of agent programs could not.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from stage_costs import Costs

from nemo_gym_polar.harnesses.base import About, Exit, HarnessContext, HarnessStatus, Launch, Mount
from nemo_gym_polar.runtimes.base import Needs
from nemo_gym_polar.runtimes.limits import Limits
from nemo_gym_polar.runtimes.registry import RUNTIMES, Backend, GatewayAddress

NAME = "simulated"
AGENT = f"{Path(__file__).stem}:Agent"
BASH = {"name": "bash", "description": "Run a command.", "parameters": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": BASH}]


class Agent:
    name = "simulated"
    about = About()

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    def installed(self) -> bool:
        return True

    def install(self) -> None:
        pass

    def mounts(self) -> tuple[Mount, ...]:
        return ()

    def launch(self, context: HarnessContext) -> Launch:
        return Launch(("agent", context.base_url + "/v1/chat/completions", context.secret, context.instruction))

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        return ("completed", "") if ended.code == 0 else ("failed", ended.stderr.decode())


class World:
    """The costs, the chance, and the HTTP client of all simulated sandboxes. `calls` counts model calls.

    The agents of two runs draw the same turns, whatever the pools. `late`: the evaluator has no sandbox of its own yet
    and makes it first.
    """

    def __init__(self, costs: Costs, client: aiohttp.ClientSession, *, late: bool, seed: int = 0) -> None:
        self.late = late
        self.costs, self.client = costs, client
        self.random = random.Random(seed)
        self.calls = 0
        self._agents = itertools.count()
        RUNTIMES[NAME] = Backend(self.make, lambda needs: None)
        sys.modules.setdefault(Path(__file__).stem, sys.modules[__name__])

    def make(
        self, gateway: GatewayAddress | None, mounts: Sequence[Mount], limits: Limits, needs: Needs
    ) -> SimulatedSandbox:
        return SimulatedSandbox(self, gateway.url if gateway else "")

    async def agent(self, url: str, secret: str, instruction: str) -> None:
        history: list[dict[str, Any]] = [{"role": "user", "content": instruction}]
        chance = random.Random(next(self._agents))
        for _ in range(self.costs.draw_turns(chance)):
            body = {"model": "m", "messages": history, "tools": TOOLS}
            async with self.client.post(url, json=body, headers={"authorization": f"Bearer {secret}"}) as reply:
                reply.raise_for_status()
                message = (await reply.json())["choices"][0]["message"]
            self.calls += 1
            await asyncio.sleep(self.costs.tool.draw(chance, self.costs.scale))
            history.append(message)
            ids = [call["id"] for call in message["tool_calls"]]
            history += [{"role": "tool", "tool_call_id": one, "content": "3 passed, 1 failed"} for one in ids]


class SimulatedSandbox:
    workspace = "/workspace"
    home = "/home"

    def __init__(self, world: World, gateway_url: str) -> None:
        self.world = world
        self.gateway_url = gateway_url

    async def start(self) -> None:
        await asyncio.sleep(self.world.costs.sandbox.draw(self.world.random, self.world.costs.scale))

    async def run(self, argv: Sequence[str], *, timeout: float, **_: Any) -> Exit:
        """The agent's command, or the evaluator's."""
        async with asyncio.timeout(timeout):
            if argv[0] == "agent":
                await self.world.agent(*argv[1:])
            else:
                if self.world.late:
                    await self.start()
                await asyncio.sleep(self.world.costs.evaluation.draw(self.world.random, self.world.costs.scale))
        return Exit(0, False, b"", b"", 0.0)

    async def write(self, path: str, data: bytes, *, append: bool = False, mode: int = 0o644) -> None:
        pass

    async def read(self, path: str) -> bytes:
        return b""

    async def save(self, directory: str, archive: Path, *, timeout: float) -> None:
        pass

    async def restore(self, archive: Path, directory: str, *, clean: bool = False, timeout: float) -> None:
        pass

    async def alive(self) -> bool:
        return True

    async def stop(self) -> None:
        pass
