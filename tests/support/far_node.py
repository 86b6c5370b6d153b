# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node on a real port: the one here, and the same one over the wire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import SecretStr

from nemo_gym_polar.engines.factory import make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, serve
from nemo_gym_polar.rollouts.hosting.local import NodeBox
from nemo_gym_polar.rollouts.hosting.node import node_app
from nemo_gym_polar.rollouts.hosting.settings import HostSettings
from nemo_gym_polar.rollouts.nodes.base import Report
from nemo_gym_polar.rollouts.nodes.http import HttpNode, make_client
from nemo_gym_polar.rollouts.nodes.local import LocalNode
from nemo_gym_polar.rollouts.nodes.weights import GatewayWeights
from nemo_gym_polar.rollouts.settings import RolloutSettings
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import engine_settings

TOKEN = SecretStr("hush-hush")


class Pair:
    """A node here, and the same one over the wire."""

    def __init__(self, here: LocalNode, there: HttpNode, url: str, client: aiohttp.ClientSession) -> None:
        self.here, self.there, self.url, self.client = here, there, url, client

    async def ended(self, name: str) -> Report:
        async with asyncio.timeout(30):
            cursor = 0
            while True:
                for report in await self.there.reports(cursor, 5.0):
                    cursor = report.cursor
                    if report.session_id == name and report.status.final:
                        return report

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        async with self.client.request(method, self.url + path, **options) as reply:
            return reply.status, await reply.json()


@contextlib.asynccontextmanager
async def paired(
    engine: FakeEngine, directory: Path, kind: type[LocalNode] = LocalNode, name: str = "far"
) -> AsyncIterator[Pair]:
    (directory / "journals").mkdir(parents=True)
    settings = HostSettings(directory=directory, token=TOKEN)
    box = NodeBox()
    async with Gateway(
        make_engine(engine_settings(engine)), GatewaySettings(journals=directory / "journals")
    ) as gateway:
        app = node_app(gateway, box, settings)
        async with serve(gateway, uds=directory / "gateway.sock", app=app) as server, make_client(TOKEN) as client:
            limits = RolloutSettings(directory=directory)
            box.node = kind(name, gateway, server, limits, weights=GatewayWeights(gateway))
            yield Pair(box.node, HttpNode(name, server.url, client), server.url, client)
            await box.node.close()
