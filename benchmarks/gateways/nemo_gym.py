# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""NeMo Gym's vLLM model server with its own token capture; the session is in the path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
from peers import PEERS

from gateways.base import Endpoint, Gateway, Place


class NeMoGym(Gateway):
    peer = "nemo_gym"

    def __init__(self, name: str, *, capture: bool = True, delta: bool = False) -> None:
        self.name, self._capture, self._delta = name, capture, delta
        what = ("capture, delta records" if delta else "capture") if capture else "no capture"
        self.title = f"nemo-gym 0.7.0, {what}"
        self.keeps = "JSON lines on disk, synced before the answer" if capture else "nothing"

    def command(self, place: Place) -> list[str]:
        return [PEERS["nemo_gym"].program("python"), "app.py"]

    def directory(self, place: Place) -> Path:
        (found,) = PEERS["nemo_gym"].root.glob("lib/*/site-packages/responses_api_models/vllm_model")
        return found

    def environment(self, place: Place) -> dict[str, str]:
        return {"NEMO_GYM_CONFIG_PATH": "policy_model", "NEMO_GYM_CONFIG_DICT": json.dumps(self._config(place))}

    def _config(self, place: Place) -> dict[str, Any]:
        ids = {"return_token_id_information": self._capture, "request_prompt_and_generation_token_ids": self._capture}
        engine = {"base_url": f"{place.engine}/v1", "api_key": "none", "model": "m", "uses_reasoning_parser": False}
        server = {"entrypoint": "app.py", "host": "127.0.0.1", "port": place.port, **engine, **ids}
        capture = {"enabled": self._capture, "all_agents": True, "delta_records": self._delta}
        return {
            "policy_model": {"responses_api_models": {"vllm_model": server}},
            "token_id_capture": {**capture, "dir": str(self.kept(place))},
            "head_server": {"host": "127.0.0.1", "port": place.port + 1},
            "dry_run": False,
        }

    async def open(self, client: aiohttp.ClientSession, place: Place, session: str) -> Endpoint:
        capture = "/training-token-capture" if self._capture else ""
        return Endpoint(f"{place.url}/ng-rollout/{session}{capture}/v1")

    def kept(self, place: Place) -> Path:
        return place.scratch / "captures"
