# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The floors: no gateway at all, a router that records nothing, and a proxy that records and does nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

from peers import PEERS
from processes import ROOT

from gateways.base import Endpoint, Gateway, Place

IDS = {"logprobs": True, "return_token_ids": True}


class Direct(Gateway):
    """Started by the benchmark for all others, so it has no command here."""

    name, title, keeps = "direct", "the engine itself", "nothing"
    fields: ClassVar[dict[str, Any]] = IDS

    async def open(self, client: object, place: Place, session: str) -> Endpoint:
        return Endpoint(f"{place.engine}/v1")


class SGLangRouter(Gateway):
    name, title, keeps = "sglang-router", "sglang-router 0.3.2", "nothing"
    peer = "sglang_router"
    fields: ClassVar[dict[str, Any]] = IDS

    def command(self, place: Place) -> list[str]:
        launch = [PEERS["sglang_router"].program("python"), "-m", "sglang_router.launch_router"]
        where = ["--host", "127.0.0.1", "--port", str(place.port), "--worker-urls", place.engine]
        return [*launch, *where, "--policy", "round_robin", "--prometheus-port", str(place.port + 1)]


class RecordingProxy(Gateway):
    name, title, keeps = "proxy", "minimal recording proxy", "request and reply, in a file, not synced"

    def command(self, place: Place) -> list[str]:
        script = str(ROOT / "benchmarks" / "recording_proxy.py")
        return [sys.executable, script, place.engine, str(self.kept(place)), str(place.port)]

    def kept(self, place: Place) -> Path:
        return place.scratch / "proxy.jsonl"
