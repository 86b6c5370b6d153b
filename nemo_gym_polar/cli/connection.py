# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which service a command speaks to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from nemo_gym_polar.cli.errors import CommandError, UsageError
from nemo_gym_polar.rollouts.client import RolloutClient, UnreachableError

Url = Annotated[str, typer.Option(envvar="POLAR_URL", help="The service's address.")]
Token = Annotated[
    str | None,
    typer.Option(envvar=["POLAR_CONTROL_TOKEN", "POLAR_CONTROL_PLANE_TOKEN"], help="Its control token."),
]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
HERE = "http://127.0.0.1:8080"


def require_http(option: str, *urls: str) -> None:
    """Nothing answers at a host without a scheme, and a node would wait for it. Raises `UsageError`."""
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{option} {url!r} does not begin with http:// or https://")


def talk[T](url: str, token: str | None, work: Callable[[RolloutClient], Awaitable[T]]) -> T:
    """Do `work` with a client of the service. What it refuses is a `ServiceError`."""
    require_http("--url", url)

    async def speak() -> T:
        async with RolloutClient(url, token) as client:
            return await work(client)

    try:
        return asyncio.run(speak())
    except UnreachableError as error:
        if error.status is not None:
            raise
        raise CommandError(f"{error}; does it run there? --url or POLAR_URL says where it does") from error
