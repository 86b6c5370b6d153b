# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""rllm-model-gateway: its own program; the session is in the path."""

from __future__ import annotations

from pathlib import Path

import aiohttp
from peers import PEERS

from gateways.base import Endpoint, Gateway, Place, post


class RLLM(Gateway):
    peer = "rllm"

    def __init__(self, name: str, *, store: str = "memory") -> None:
        self.name, self._store = name, store
        self.title = f"rllm-model-gateway 0.1.0, {store}"
        self.keeps = f"request, reply and ids of every call, in {'memory' if store == 'memory' else 'SQLite'}"

    def command(self, place: Place) -> list[str]:
        worker = ["--worker", f"{place.engine}/v1", "--store", self._store, "--log-level", "WARNING"]
        where = ["--host", "127.0.0.1", "--port", str(place.port), "--db-path", str(place.scratch / "traces.db")]
        return [PEERS["rllm"].program("python"), "-m", "rllm_model_gateway", *where, *worker]

    async def open(self, client: aiohttp.ClientSession, place: Place, session: str) -> Endpoint:
        await post(client, f"{place.url}/sessions", {"session_id": session})
        return Endpoint(f"{place.url}/sessions/{session}/v1")

    async def close(self, client: aiohttp.ClientSession, place: Place, session: str) -> None:
        if self._store == "memory":
            async with client.delete(f"{place.url}/sessions/{session}") as reply:
                reply.raise_for_status()

    def kept(self, place: Place) -> Path | None:
        return None if self._store == "memory" else place.scratch
