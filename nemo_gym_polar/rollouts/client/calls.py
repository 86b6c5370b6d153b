# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""HTTP calls that may be repeated, and are, while the service can't be reached."""

from __future__ import annotations

import asyncio
import random
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

from nemo_gym_polar.rollouts.client.errors import ServiceError, UnreachableError, make_error

FIRST_DELAY = 0.2  # seconds
LONGEST_DELAY = 5.0
AGAIN = (502, 503)
JSON = {"content-type": "application/json"}


class Calls:
    """`attempts` counts the first one, too. Redirects are not followed: they could lead the token elsewhere."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 60.0, attempts: int = 4) -> None:
        self.url = url.rstrip("/")
        self.timeout = aiohttp.ClientTimeout(total=timeout)
        self.attempts = attempts
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._session: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=self.timeout)
        return self._session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session:
            await session.close()

    async def call(
        self, method: str, path: str, *, body: Any = None, timeout: float | None = None, **query: Any
    ) -> Any:
        """The answer's JSON. Raises a `ServiceError`."""
        for attempt in range(1, self.attempts + 1):
            try:
                return orjson.loads(await self.once(method, path, body, timeout, query))
            except UnreachableError:
                if attempt == self.attempts:
                    raise
                await asyncio.sleep(pause(attempt))
            except orjson.JSONDecodeError as error:
                raise ServiceError(f"{self.url}{path} answered no JSON: is that the rollout service?") from error
        raise AssertionError("unreachable")

    async def once(self, method: str, path: str, body: Any, timeout: float | None, query: dict[str, Any]) -> bytes:
        data = None if body is None else orjson.dumps(body)
        limit = self.timeout if timeout is None else aiohttp.ClientTimeout(total=timeout)
        asked = {name: encoded(value) for name, value in query.items() if value is not None}
        try:
            async with self.http.request(
                method, self.url + path, data=data, params=asked, headers=JSON, timeout=limit, allow_redirects=False
            ) as reply:
                text = await reply.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"no answer from the service at {self.url}: {reason(error)}") from error
        if reply.status >= 300:
            raise make_error(reply.status, said(text), reply.headers.get("Retry-After"), self.url)
        return text


def reason(error: BaseException) -> str:
    """In few words."""
    system = getattr(error, "os_error", None)
    return (system.strerror if system else str(error)) or type(error).__name__


def pause(attempt: int) -> float:
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


def encoded(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def said(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
