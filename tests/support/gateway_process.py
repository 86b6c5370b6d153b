# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway in a process of its own: `python -m tests.support.gateway_process SETTINGS_JSON`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.gateway.standalone import ServeSettings, run_gateway
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import engine_settings


@dataclass(frozen=True, slots=True)
class Running:
    """`base_url` and `key` are those of the one session, empty with an admin token."""

    process: Process
    url: str
    base_url: str
    key: str


@contextlib.asynccontextmanager
async def running(settings: ServeSettings, *, stderr: int | None = None) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.gateway_process", settings.model_dump_json(), stdout=PIPE, stderr=stderr
    )
    assert process.stdout is not None
    try:
        first = (await asyncio.wait_for(process.stdout.readline(), 120)).decode().split()
        url = first[2].rstrip(";")
        if settings.admin_token:
            yield Running(process, url, "", "")
        else:
            base = (await process.stdout.readline()).decode().split()
            key = (await process.stdout.readline()).decode().split()
            yield Running(process, url, base[2], key[2])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def serve_settings(engine: FakeEngine, directory: Path, **changes: object) -> ServeSettings:
    gateway = GatewaySettings(journals=directory / "journals")
    settings = ServeSettings(engine=engine_settings(engine), gateway=gateway, traces=directory / "traces", port=0)
    return settings.model_copy(update=changes)


if __name__ == "__main__":
    run_gateway(ServeSettings.model_validate_json(sys.argv[1]), lambda text: print(text, flush=True))
