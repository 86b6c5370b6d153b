# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway inside a resources server: it listens as long as the server does."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from nemo_gym_polar.engines.factory import make_engine
from nemo_gym_polar.environment.settings import ResourcesSettings
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.server import serve


@dataclass(frozen=True, slots=True)
class Host:
    """A gateway that listens: by TCP at `url`, and on a Unix socket for sandboxes without a network."""

    gateway: Gateway
    url: str
    socket: Path


@contextlib.asynccontextmanager
async def host_gateway(settings: ResourcesSettings) -> AsyncIterator[Host]:
    gateway_settings = settings.gateway()
    gateway_settings.journals.mkdir(parents=True, exist_ok=True)
    # A socket's path may have 107 bytes, so it lies in the system's own temporary directory.
    with tempfile.TemporaryDirectory(prefix="polar-") as directory:
        socket = Path(directory) / "gateway.sock"
        async with Gateway(make_engine(settings.engine), gateway_settings) as gateway, serve(gateway, uds=socket) as at:
            yield Host(gateway, at.url, socket)
