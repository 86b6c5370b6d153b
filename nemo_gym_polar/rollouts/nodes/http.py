# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node on another machine, by its address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import orjson
from pydantic import SecretStr

from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes import wire
from nemo_gym_polar.rollouts.nodes.base import Assignment, Load, NodeBusyError, NodeError, Report

MARGIN = 20.0  # seconds that an answer may take beyond what the call itself waits for
BUSY = 503
WRONG = 422
JSON = {"content-type": "application/json"}


def make_client(token: SecretStr | None = None) -> aiohttp.ClientSession:
    """For all nodes of a service. `token` is the control plane's; a node that doesn't know it refuses."""
    headers = {"authorization": f"Bearer {token.get_secret_value()}"} if token else {}
    return aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0))


class HttpNode:
    """`client` stays the caller's to close."""

    def __init__(self, node_id: str, url: str, client: aiohttp.ClientSession) -> None:
        self._id = node_id
        self.url = url.rstrip("/")
        self._client = client

    @property
    def id(self) -> str:
        return self._id

    async def start(self, assignment: Assignment) -> None:
        await self._call("POST", "/start", wire.encode_start(assignment))

    async def cancel(self, session_id: str) -> None:
        await self._call("POST", "/cancel", {"session_ids": [session_id]})

    async def reports(self, after: int, wait: float) -> Sequence[Report]:
        found = self._own(await self._call("GET", f"/reports?after={after}&wait={wait}", wait=wait))
        try:
            return [wire.decode_report(row) for row in found["reports"]]
        except (KeyError, TypeError, ValueError) as error:
            raise NodeError(f"{self.url} reports what is no report: {error!r}") from error

    async def acknowledge(self, session_ids: Sequence[str]) -> None:
        await self._call("POST", "/acknowledge", {"session_ids": list(session_ids)})

    async def load(self) -> Load:
        found = self._own(await self._call("GET", "/load"))
        try:
            return wire.decode_load(found["load"])
        except (KeyError, TypeError) as error:
            raise NodeError(f"{self.url} answers what is no load: {error!r}") from error

    async def drain(self) -> None:
        await self._call("POST", "/drain")

    async def pause(self, seconds: float) -> None:
        await self._call("POST", "/pause", {"seconds": seconds}, wait=seconds)

    async def resume(self, policy_version: str | None = None) -> None:
        await self._call("POST", "/resume", {"policy_version": policy_version})

    async def close(self) -> None:
        """Leaves the node as it is."""

    def _own(self, found: Any) -> Mapping[str, Any]:
        """Another node that listens here now must not be taken for this one: its sessions would be strangers."""
        name = found.get("id") if isinstance(found, Mapping) else None
        if name != self.id:
            raise NodeError(f"{self.url} is node {name!r}, not {self.id!r}")
        return dict(found)

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0) -> Any:
        limit = aiohttp.ClientTimeout(total=wait + MARGIN, connect=MARGIN)
        data = None if body is None else orjson.dumps(body)
        try:
            async with self._client.request(
                method, f"{self.url}/node{path}", data=data, headers=JSON, timeout=limit, allow_redirects=False
            ) as reply:
                text = await reply.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NodeError(f"{self.url}: {error or type(error).__name__}") from error
        return answered(self.url, reply.status, text)


def answered(url: str, status: int, text: bytes) -> Any:
    """Raises what the node raised."""
    if status == 204:
        return None
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NodeError(f"{url} answered {status} with no JSON") from error
    if status == 200:
        return said
    why = explained(said)
    if status == WRONG:
        raise RolloutError(why)
    if status == BUSY:
        raise NodeBusyError(why)
    raise NodeError(f"{url} answered {status}: {why}")


def explained(said: Any) -> str:
    """The text of a refusal."""
    detail = said.get("detail", said) if isinstance(said, Mapping) else said
    if isinstance(detail, list):
        return "; ".join(str(item.get("msg", item)) if isinstance(item, Mapping) else str(item) for item in detail)
    return str(detail)
