# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How a gateway is started, how a session is made in it, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import aiohttp


class FailedError(Exception):
    """A gateway that was to be measured did not do its work."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one gateway runs: in front of `engine`, on `port`, with a directory for what it writes.

    `model` is a directory with a tokenizer and a chat template, as `transformers` reads them.
    """

    engine: str
    port: int
    scratch: Path
    model: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the calls of one session go: the base URL ends before `/chat/completions`."""

    base_url: str
    headers: dict[str, str] = field(default_factory=dict)


class Gateway:
    """`keeps` says in words what is recorded and where; `peer` is the environment that it runs in, if not ours.

    `fields` are what a client must ask for, where the gateway does not ask by itself.
    """

    name: str
    title: str
    keeps: str
    peer: str | None = None
    fields: ClassVar[dict[str, Any]] = {}
    slow: bool = False  # gets a fraction of the calls

    def command(self, place: Place) -> list[str]:
        """The program and its arguments."""
        raise AssertionError(f"{self.name} has no command")

    def environment(self, place: Place) -> dict[str, str]:
        return {}

    def directory(self, place: Place) -> Path:
        """Where its command runs."""
        return place.scratch

    async def prepare(self, client: aiohttp.ClientSession, place: Place) -> None:
        """Once it answers, before the first session."""

    async def open(self, client: aiohttp.ClientSession, place: Place, session: str) -> Endpoint:
        return Endpoint(f"{place.url}/v1")

    async def close(self, client: aiohttp.ClientSession, place: Place, session: str) -> None:
        """Where a session's end can be told."""

    def kept(self, place: Place) -> Path | None:
        """The directory or file that grows with the calls."""
        return None


async def post(client: aiohttp.ClientSession, url: str, body: object, **headers: str) -> Any:
    """The reply's JSON; an error if it is not a success."""
    try:
        async with client.post(url, json=body, headers=headers) as reply:
            if reply.status < 300:
                return await reply.json()
            raise FailedError(f"{url} answered {reply.status}: {(await reply.text())[:500]}")
    except aiohttp.ClientError as error:
        raise FailedError(f"{url} can't be reached: {error}") from error


def size(path: Path | None) -> int:
    """Bytes of a file or of all files below a directory."""
    if path is None or not path.exists():
        return 0
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
