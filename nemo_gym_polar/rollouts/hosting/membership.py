# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node's place in its service: it registers, says that it is there, and registers again where it was forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from nemo_gym_polar.rollouts.nodes.base import NodeError

logger = logging.getLogger(__name__)

FIRST_DELAY = 0.5  # seconds
CALL = aiohttp.ClientTimeout(total=10.0)
UNKNOWN = 404


class JoinError(NodeError):
    """The service refuses this node: one line with its reason."""


class Membership:
    """Registers on entry, and then keeps it up. Once `stop` is set it waits for no service any more."""

    def __init__(
        self,
        service: str,
        token: str | None,
        registration: Mapping[str, Any],
        heartbeat: float,
        stop: asyncio.Event,
    ) -> None:
        self.stop = stop
        self.service = service.rstrip("/")
        self.registration = registration
        self.heartbeat = heartbeat
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(headers=self._headers, timeout=CALL)
        try:
            await self.join()
        except BaseException:
            await self._client.close()
            raise
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._be_still()
        await self._client.close()

    async def join(self) -> None:
        """Waits for a service that is not up yet. Raises `JoinError` if it refuses."""
        delay = FIRST_DELAY
        while True:
            try:
                status, said = await self._call("POST", "/nodes/register", self.registration)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                logger.warning("the service at %s does not answer (%s); trying again", self.service, error)
            else:
                if status == 200:
                    return
                if status < 500:
                    raise JoinError(f"the service at {self.service} answered {status}: {said}")
            await self._rest(delay)
            delay = min(2 * delay, self.heartbeat)

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop.wait()
                raise JoinError(f"told to stop before the service at {self.service} answered")

    async def leave(self, *, remove: bool) -> None:
        """No more sessions for this node; `remove`: it is gone."""
        if remove:
            await self._be_still()  # or it would register again with a service that has just forgotten it
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            suffix = "?remove=true" if remove else ""
            await self._call("DELETE", f"/nodes/{self.registration['node_id']}{suffix}", None)

    async def _be_still(self) -> None:
        self._beating.cancel()
        await asyncio.gather(self._beating, return_exceptions=True)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat)
            try:
                status, _ = await self._call("POST", f"/nodes/{self.registration['node_id']}/heartbeat", {})
                if status == UNKNOWN:
                    await self.join()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                logger.warning("the service at %s does not answer: %s", self.service, error)
            except JoinError as error:
                logger.error("%s", error)

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, str]:
        async with self._client.request(method, self.service + path, json=body, allow_redirects=False) as reply:
            return reply.status, await reply.text()
