# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Our gateway, as `polar serve` runs it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import aiohttp

from gateways.base import Endpoint, Gateway, Place, post
from nemo_gym_polar.engines.factory import EngineSettings
from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.gateway.standalone import ServeSettings

ADMIN = {"authorization": "Bearer bench"}
SERVE = """
import sys
from nemo_gym_polar.gateway.standalone import ServeSettings, run_gateway
run_gateway(ServeSettings.model_validate_json(sys.argv[1]), lambda text: print(text, flush=True))
"""


class Polar(Gateway):
    """`window` is the commit window in seconds, `chat` leaves rendering to the engine, `tmpfs` journals to memory."""

    def __init__(self, name: str, *, window: float = 0.0, chat: bool = False, tmpfs: bool = False) -> None:
        self.name = name
        self._window, self._chat, self._tmpfs = window, chat, tmpfs
        mode = "chat mode" if chat else "tokens mode"
        self.title = f"ours, {mode}, window {1000 * window:g} ms" + (", journal on tmpfs" if tmpfs else "")
        self.keeps = "a journal " + ("in memory: not durable" if tmpfs else "on disk, synced before the answer")

    def command(self, place: Place) -> list[str]:
        return [sys.executable, "-c", SERVE, self._settings(place).model_dump_json()]

    def _settings(self, place: Place) -> ServeSettings:
        tokens = {"tokenizer": str(place.model), "renderer_options": {"enable_thinking": False}}
        mode = {"mode": "chat"} if self._chat else tokens
        return ServeSettings(
            engine=EngineSettings(urls=(place.engine,), model="m", **mode),
            gateway=GatewaySettings(journals=self.kept(place), context_tokens=1_000_000, commit_window=self._window),
            traces=place.scratch / "traces",
            port=place.port,
            admin_token="bench",
        )

    async def open(self, client: aiohttp.ClientSession, place: Place, session: str) -> Endpoint:
        made = await post(client, f"{place.url}/sessions", {"session_id": session}, **ADMIN)
        return Endpoint(made["base_url"] + "/v1", {"authorization": f"Bearer {made['secret']}"})

    async def close(self, client: aiohttp.ClientSession, place: Place, session: str) -> None:
        async with client.delete(f"{place.url}/sessions/{session}", headers=ADMIN) as reply:
            reply.raise_for_status()

    def kept(self, place: Place) -> Path:
        if not self._tmpfs:
            return place.scratch / "journals"
        return Path("/dev/shm") / place.scratch.parent.name

    def clean(self, place: Place) -> None:
        if self._tmpfs:
            shutil.rmtree(self.kept(place), ignore_errors=True)
