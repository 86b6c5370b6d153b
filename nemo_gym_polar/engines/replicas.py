# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One or several copies of an engine behind one HTTP client.

A session sticks to the replica that it was given first, because that one holds its prefix cache. Sessions of a group
begin with the same tokens, so they go to the group's favourite replica where it is free. A replica that can't
be reached is left alone for a while and its sessions move; asking again elsewhere is safe, since a generation that
nobody received has no effect.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import urlsplit

import aiohttp

from nemo_gym_polar.engines.base import EngineError, ReplicaState

_COOL_DOWN = 5.0  # seconds before a replica that failed is tried again
_CONNECT_TIMEOUT = 10.0
_SLACK = 4  # sessions that a replica may have more than the emptiest one, and still count as free


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    retry_after: float | None


class Replicas:
    """`timeout` bounds the silence of an engine in seconds, not the length of a generation."""

    def __init__(self, urls: Sequence[str], *, api_key: str | None = None, timeout: float = 600.0) -> None:
        if not urls:
            raise ValueError("engine.urls is empty; name at least one engine, such as http://127.0.0.1:8000")
        self.urls = tuple(url.rstrip("/").removesuffix("/v1") for url in urls)
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=timeout)
        self._secret = api_key.encode() if api_key else None
        self._shown = {url: without_password(url) for url in self.urls}
        self._failures: Counter[str] = Counter()
        self._assigned: dict[str, str] = {}
        self._groups: dict[str, str] = {}
        self._dead_until: dict[str, float] = {}
        self._client: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: bytes, *, session: str) -> Reply:
        """The first whole reply. Raises `EngineError` when every replica failed."""
        failures: list[str] = []
        for _ in range(len(self.urls) + 1):
            url = self._pick(session)
            try:
                return await self._post(url + path, body)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failures.append(f"{self._shown[url]}: {error or type(error).__name__}")
                self._failures[url] += 1
                self._dead_until[url] = time.monotonic() + _COOL_DOWN
                self._assigned.pop(session, None)
        raise EngineError(f"No engine answered ({'; '.join(failures)}).", fault="unreachable", status=503)

    async def _post(self, url: str, body: bytes) -> Reply:
        async with self._session().post(url, data=body) as response:
            return Reply(response.status, self._said(response.status, await response.read()), _wait(response))

    async def get(self, path: str) -> Reply:
        """A reply of the first replica that answers; for questions whose answer is the same everywhere."""
        failures: list[str] = []
        for url in self.urls:
            try:
                async with self._session().get(url + path) as response:
                    return Reply(response.status, self._said(response.status, await response.read()), None)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failures.append(f"{self._shown[url]} ({error or type(error).__name__})")
        raise EngineError(f"No engine answered at {'; '.join(failures)}.", fault="unreachable", status=503)

    async def each(self, path: str, seconds: float) -> list[Reply]:
        """What every replica answers within `seconds`; those that don't are left out."""
        limit = aiohttp.ClientTimeout(total=seconds)

        async def ask(url: str) -> Reply | None:
            try:
                async with self._session().get(url + path, timeout=limit) as response:
                    return Reply(response.status, self._said(response.status, await response.read()), None)
            except (aiohttp.ClientError, TimeoutError, OSError):
                return None

        return [reply for reply in await asyncio.gather(*map(ask, self.urls)) if reply is not None]

    def _said(self, status: int, body: bytes) -> bytes:
        """A refusal is shown to harnesses and logs; some servers repeat the key in it."""
        if status >= 400 and self._secret is not None:
            return body.replace(self._secret, b"[redacted]")
        return body

    @property
    def shown(self) -> list[str]:
        """The URLs, fit for messages."""
        return list(self._shown.values())

    def states(self) -> list[ReplicaState]:
        now = time.monotonic()
        return [
            ReplicaState(self._shown[url], self._dead_until.get(url, 0.0) <= now, self._failures[url])
            for url in self.urls
        ]

    def _pick(self, session: str) -> str:
        now = time.monotonic()
        url = self._assigned.get(session)
        if url is None:
            load = Counter(self._assigned.values())
            dead = [url for url in self.urls if self._dead_until.get(url, 0.0) > now]
            alive = [url for url in self.urls if url not in dead] or list(self.urls)
            url = self._assigned[session] = choose(alive, load, self._groups.get(session))
        return url

    def join(self, session: str, group: str) -> None:
        """The session begins as the others of its group do."""
        self._groups[session] = group

    def release(self, session: str) -> None:
        self._assigned.pop(session, None)
        self._groups.pop(session, None)

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
                cookie_jar=aiohttp.DummyCookieJar(),  # all sessions share this client
                headers=self._headers,
                skip_auto_headers=("accept", "accept-encoding", "user-agent"),  # nothing is unpacked here
                timeout=self._timeout,
                auto_decompress=False,
            )
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None


def choose(urls: Sequence[str], load: Mapping[str, int], group: str | None) -> str:
    """The emptiest; for a session of a group, its favourite of those that are free.

    Which one a group likes best follows from the names alone (rendezvous hashing), so that every gateway in front of
    these replicas says the same without asking the others, and a replica that goes changes nothing for the rest.
    """
    least = min(load[url] for url in urls)
    if group is None:
        return next(url for url in urls if load[url] == least)
    free = [url for url in urls if load[url] <= least + _SLACK]
    return max(free, key=lambda url: blake2b(f"{group}\0{url}".encode()).digest())


def without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _wait(response: aiohttp.ClientResponse) -> float | None:
    """The seconds of its retry-after."""
    value = response.headers.get("retry-after")
    try:
        return float(value) if value else None
    except ValueError:
        return None
