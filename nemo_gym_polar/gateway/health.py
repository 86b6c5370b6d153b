# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Can this gateway do its work: does the engine answer, does the journals' disk take bytes?"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.gateway.gateway import Gateway

_FRESH = 5.0  # seconds; many may ask
_PATIENCE = 5.0  # seconds
_PROBE = b"\0" * 4096


class Health:
    """`reasons` why the gateway is not ready; empty when it is."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._lock = asyncio.Lock()
        self._found: list[str] = []
        self._until = 0.0

    async def report(self) -> dict[str, Any]:
        gateway = self._gateway
        reasons = await self._reasons()
        if gateway.draining:
            reasons = ["the gateway is shutting down", *reasons]
        return {
            "status": "unready" if reasons else "ok",
            "reasons": reasons,
            "sessions": len(gateway),
            "calls": gateway.calls_in_flight,
            "paused": gateway.weights.paused,
            "policy_version": gateway.policy_version,
            "engine_replicas_up": sum(one.up for one in gateway.mode.engine.replicas()),
        }

    async def _reasons(self) -> list[str]:
        async with self._lock:
            if time.monotonic() >= self._until:
                asked = await asyncio.gather(self._engine(), asyncio.to_thread(self._disk))
                self._found = [reason for reason in asked if reason]
                self._until = time.monotonic() + _FRESH
        return self._found

    async def _engine(self) -> str:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._gateway.mode.engine.check()
        except EngineError:
            return "no engine answers"
        except TimeoutError:
            return f"the engine does not answer within {_PATIENCE:g} s"
        return ""

    def _disk(self) -> str:
        settings = self._gateway.settings
        try:
            settings.journals.mkdir(parents=True, exist_ok=True)
            _write(settings.journals)
            free = shutil.disk_usage(settings.journals).free
        except OSError as error:
            return f"the journals can't be written: {error.strerror}"
        if free < settings.min_free_bytes:
            return f"the journals' disk has {free} bytes left, less than min_free_bytes={settings.min_free_bytes}"
        return ""


def _write(directory: Path) -> None:
    with tempfile.TemporaryFile(dir=directory) as file:
        file.write(_PROBE)
        file.flush()
        os.fsync(file.fileno())
