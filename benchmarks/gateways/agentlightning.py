# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""agent-lightning: `agl-server`; a model and a rollout are registered, the rollout is in the path."""

from __future__ import annotations

import aiohttp
from peers import PEERS

from gateways.base import Endpoint, Gateway, Place, post


class AgentLightning(Gateway):
    name, title = "agentlightning", "agentlightning 1.0.2"
    keeps = "request and reply of every call, in memory"
    peer = "agentlightning"

    def command(self, place: Place) -> list[str]:
        hydra = [f"hydra.run.dir={place.scratch}", "hydra/job_logging=disabled"]
        model = ["default_proxy.model_name=m", "host=127.0.0.1", f"port={place.port}"]
        return [PEERS["agentlightning"].program("agl-server"), *model, *hydra]

    async def prepare(self, client: aiohttp.ClientSession, place: Place) -> None:
        await post(client, f"{place.url}/api/models", [{"model": "m", "endpoint": f"{place.engine}/v1"}])

    async def open(self, client: aiohttp.ClientSession, place: Place, session: str) -> Endpoint:
        await post(client, f"{place.url}/api/rollouts", [{"input": {}, "rollout_id": session}])
        return Endpoint(f"{place.url}/proxy/rollout/{session}/attempt/0/mode/train/openai/v1")
