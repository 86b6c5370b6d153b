# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The resources side of a rollout in front of a scripted engine, and a harness that talks to it over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from nemo_gym_polar.environment.host import host_gateway
from nemo_gym_polar.environment.protocol import Finish, Open, Opened, Verify
from nemo_gym_polar.environment.result import Result
from nemo_gym_polar.environment.sessions import Sessions
from nemo_gym_polar.environment.settings import ResourcesSettings
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import chat, engine_settings, user

PARAMS: dict[str, Any] = {"input": [{"role": "user", "content": "Create hello.txt"}]}


@pytest.fixture
def settings(engine: FakeEngine, tmp_path: Path) -> ResourcesSettings:
    return ResourcesSettings(engine=engine_settings(engine), directory=tmp_path, context_tokens=2048)


@dataclass(slots=True)
class Desk:
    """Resources side and harness side of one rollout after another."""

    engine: FakeEngine
    sessions: Sessions
    client: aiohttp.ClientSession

    async def open(self, session_id: str = "s1", **params: Any) -> Opened:
        return await self.sessions.open(Open(session_id=session_id, timeout_seconds=30, **params))

    async def call(self, at: Opened, messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any] | None:
        """The assistant's message, or None for an error."""
        headers = {"authorization": f"Bearer {at.secret}"}
        url = at.url + at.path + "/v1/chat/completions"
        async with self.client.post(url, json=chat(*messages, **fields), headers=headers) as reply:
            answer = await reply.json()
        return answer["choices"][0]["message"] if reply.status == 200 else None

    async def verify(
        self,
        at: Opened,
        status: SessionStatus = SessionStatus.COMPLETED,
        reward: float = 1.0,
        *,
        finish: bool = True,
        **more: Any,
    ) -> Result:
        if finish:
            await self.sessions.finish(Finish(session_id=at.session_id))
        ask = Verify(
            responses_create_params=PARAMS,
            session_id=at.session_id,
            task_id="t",
            status=status,
            reward=reward,
            timing={"running": 1.5},
            **more,
        )
        return await self.sessions.verify(ask)

    async def converse(self, at: Opened, *texts: str, start: str = "Create hello.txt") -> list[dict[str, Any]]:
        """One call per text after the first; each answer is echoed in the next history."""
        messages = [user(start)]
        for text in (None, *texts):
            if text is not None:
                messages.append(user(text))
            answer = await self.call(at, messages)
            assert answer is not None
            messages.append(answer)
        return messages


@pytest.fixture
async def desk(engine: FakeEngine, settings: ResourcesSettings) -> AsyncIterator[Desk]:
    async with host_gateway(settings) as host, aiohttp.ClientSession() as client:
        yield Desk(engine, Sessions(host, settings), client)
