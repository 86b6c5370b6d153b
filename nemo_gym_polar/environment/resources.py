# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The resources server: gateway and builders behind NeMo Gym's routes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
from fastapi import FastAPI, HTTPException, Response
from nemo_gym.base_resources_server import BaseResourcesServerConfig, SimpleResourcesServer
from pydantic import PrivateAttr

from nemo_gym_polar.environment.host import host_gateway
from nemo_gym_polar.environment.protocol import Finish, Open, Opened, Verify
from nemo_gym_polar.environment.sessions import Sessions
from nemo_gym_polar.environment.settings import ResourcesSettings
from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.gateway.gateway import UnknownSessionError


class PolarResourcesServerConfig(ResourcesSettings, BaseResourcesServerConfig):
    """NeMo Gym adds host, port, name and domain."""


class PolarResourcesServer(SimpleResourcesServer):
    """NeMo Gym's routes onto `Sessions`; the gateway listens while the server does."""

    config: PolarResourcesServerConfig
    _sessions: Sessions = PrivateAttr()

    def setup_webserver(self) -> FastAPI:
        app: FastAPI = super().setup_webserver()
        app.post("/finish")(self.finish)
        inner = app.router.lifespan_context

        @contextlib.asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
            async with host_gateway(self.config) as host, inner(app) as state:
                self._sessions = Sessions(host, self.config)
                yield state

        app.router.lifespan_context = lifespan
        return app

    async def seed_session(self, body: Open) -> Opened:
        return await self._sessions.open(body)

    async def finish(self, body: Finish) -> Response:
        with _refusals():
            return _json((await self._sessions.finish(body)).model_dump())

    async def verify(self, body: Verify) -> Response:
        with _refusals():
            return _json(await self._sessions.verify(body))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except UnknownSessionError as error:
        raise HTTPException(404, str(error)) from None
    except BuilderError as error:
        raise HTTPException(422, str(error)) from None


def _json(value: Any) -> Response:
    """A result holds millions of numbers: pydantic is spared them."""
    return Response(orjson.dumps(value), media_type="application/json")
