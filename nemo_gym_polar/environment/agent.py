# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The agent server: `/run` is one rollout of an unmodified agent program.

Whatever happens, `/run` answers 200 with a result: one HTTP error ends a whole collection in NeMo Gym, and a whole
training run in NeMo RL. A rollout that must not be trained on says so in its result.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

import orjson
from fastapi import Body, FastAPI, HTTPException, Response
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from nemo_gym.config_types import ResourcesServerRef
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from pydantic import PrivateAttr

from nemo_gym_polar.environment.client import RemoteSessions, ResourcesClient
from nemo_gym_polar.environment.rollout import run_row
from nemo_gym_polar.environment.settings import AgentSettings
from nemo_gym_polar.rollouts.service import RolloutService


class PolarAgentConfig(AgentSettings, BaseResponsesAPIAgentConfig):
    """NeMo Gym adds host, port and name."""

    resources_server: ResourcesServerRef


class PolarAgent(SimpleResponsesAPIAgent):
    """NeMo Gym's routes onto the rollout service. Tokens stay with the resources server."""

    config: PolarAgentConfig
    _client: ResourcesClient = PrivateAttr()
    _service: RolloutService = PrivateAttr()

    def setup_webserver(self) -> FastAPI:
        app: FastAPI = super().setup_webserver()
        inner = app.router.lifespan_context

        @contextlib.asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
            self._client = ResourcesClient(self._post, timeout=self.config.resources_timeout)
            settings = self.config.rollouts
            service = RolloutService(RemoteSessions(self._client, settings), settings)
            async with service as self._service, inner(app) as state:
                yield state

        app.router.lifespan_context = lifespan
        return app

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        raise HTTPException(501, "the agent program makes its own model calls: POST /run")

    async def run(self, row: Annotated[dict[str, Any], Body()]) -> Response:
        made = await run_row(self._service, self._client, row, self.config.task)
        return Response(orjson.dumps(made), media_type="application/json")

    async def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        reply = await self.server_client.post(self.config.resources_server.name, path, json=body)
        return reply.status, await reply.read()
