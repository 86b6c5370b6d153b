# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""agentcore-rl-toolkit: its rollout gateway with its own renderer and vLLM backend, in tokens mode as ours is."""

from __future__ import annotations

import aiohttp
from peers import PEERS
from processes import ROOT

from gateways.base import Endpoint, Gateway, Place, post


class AgentCore(Gateway):
    name, title = "agentcore", "agentcore-rl-toolkit 0.2.0"
    keeps = "messages and ids as a tree, in memory"
    peer = "agentcore"

    def command(self, place: Place) -> list[str]:
        script = str(ROOT / "benchmarks" / "peers" / "agentcore_server.py")
        return [PEERS["agentcore"].program("python"), script, place.engine, str(place.model), str(place.port)]

    async def open(self, client: aiohttp.ClientSession, place: Place, session: str) -> Endpoint:
        await post(client, f"{place.url}/open/{session}", {})
        return Endpoint(f"{place.url}/v1", {"authorization": f"Bearer {session}"})
