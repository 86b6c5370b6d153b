# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The agent server's side of the protocol: the resources server by its NeMo Gym name."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from nemo_gym_polar.environment.protocol import Finish, Finished, Open, Opened, Verify
from nemo_gym_polar.environment.result import Result
from nemo_gym_polar.environment.rows import SAMPLING
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.sources import Collected, OpenSession
from nemo_gym_polar.rollouts.task import BuilderSpec, TaskRequest
from nemo_gym_polar.runtimes.registry import GatewayAddress

Post = Callable[[str, dict[str, Any]], Awaitable[tuple[int, bytes]]]
"""(path, JSON) → (status, body)."""

_AT_LEAST = 0.001  # seconds; a deadline may have passed on the way here


class ResourcesServerError(ConnectionError):
    """The resources server refused, or did not answer."""


class ResourcesClient:
    """Opens, finishes and verifies sessions over `post`. Raises `ResourcesServerError` after `timeout` seconds:
    NeMo Gym's own client asks a dead server again for ever."""

    def __init__(self, post: Post, *, timeout: float) -> None:
        self._post = post
        self._timeout = timeout

    async def open(self, ask: Open) -> Opened:
        return Opened.model_validate(await self._ask("/seed_session", ask))

    async def finish(self, ask: Finish) -> Finished:
        return Finished.model_validate(await self._ask("/finish", ask))

    async def verify(self, ask: Verify) -> Result:
        made: Result = await self._ask("/verify", ask)
        return made

    async def _ask(self, path: str, ask: BaseModel) -> Any:
        try:
            async with asyncio.timeout(self._timeout):
                status, body = await self._post(path, ask.model_dump(mode="json"))
        except TimeoutError:
            raise ResourcesServerError(f"no answer to {path} within {self._timeout:g} s") from None
        if status != 200:
            raise ResourcesServerError(f"{path} answered {status}: {body[:300].decode(errors='replace')}")
        return orjson.loads(body)


class RemoteSessions:
    """Sessions of the resources server's gateway, as the rollout service takes them."""

    def __init__(self, client: ResourcesClient, settings: RolloutSettings) -> None:
        self._client = client
        self._settings = settings

    async def open(self, request: TaskRequest, sample: int, deadline: float) -> OpenSession:
        ask = Open(
            session_id=uuid.uuid4().hex,
            model=request.agent.model_name,
            timeout_seconds=max(deadline - time.monotonic(), _AT_LEAST),
            max_turns=self._settings.max_turns,
            max_generated_tokens=self._settings.max_generated_tokens,
            max_context_tokens=self._settings.max_context_tokens,
            max_read_tokens=self._settings.max_read_tokens,
            max_calls=self._settings.max_calls,
            when_exhausted=self._settings.when_exhausted,
            metadata={"task_id": request.task_id, **request.metadata},
            **request.metadata.get(SAMPLING, {}),
        )
        at = await self._client.open(ask)
        address = GatewayAddress(at.url, Path(at.socket))
        return OpenSession(at.session_id, at.secret, at.path, address, at.model, at.context_tokens, at.max_tokens)

    async def finish(self, session_id: str, builder: BuilderSpec, outcome: Mapping[str, Any]) -> Collected:
        ask = Finish(session_id=session_id, builder=builder, outcome=dict(outcome))
        finished = await self._client.finish(ask)
        traces = [trace.trace() for trace in finished.traces]
        return Collected(traces, finished.dropped, finished.turns, exhausted=finished.exhausted)
