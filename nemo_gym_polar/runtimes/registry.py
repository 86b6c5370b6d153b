# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Runtimes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nemo_gym_polar.runtimes.base import Mount, Runtime, SandboxError
from nemo_gym_polar.runtimes.bubblewrap import BubblewrapRuntime, find_bwrap
from nemo_gym_polar.runtimes.limits import Limits
from nemo_gym_polar.runtimes.local import LocalRuntime


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where the gateway listens: by TCP, and by a Unix socket for sandboxes without a network."""

    url: str
    socket: Path | None = None


def bubblewrap(gateway: GatewayAddress, mounts: Sequence[Mount], limits: Limits) -> Runtime:
    return BubblewrapRuntime(gateway=gateway.socket, mounts=mounts, limits=limits)


def local(gateway: GatewayAddress, mounts: Sequence[Mount], limits: Limits) -> Runtime:
    return LocalRuntime(gateway_url=gateway.url, mounts=mounts, limits=limits)


RUNTIMES: dict[str, Callable[[GatewayAddress, Sequence[Mount], Limits], Runtime]] = {
    "bubblewrap": bubblewrap,
    "local": local,
}


def make_runtime(
    backend: str, gateway: GatewayAddress, mounts: Sequence[Mount] = (), settings: Mapping[str, Any] | None = None
) -> Runtime:
    """A runtime that is not started yet. `settings` are the fields of `Limits`."""
    return RUNTIMES[known(backend)](gateway, mounts, read_limits(settings or {}))


def check_runtime(backend: str, settings: Mapping[str, Any]) -> None:
    """Raise `SandboxError` now for what would make every sandbox of this kind fail."""
    read_limits(settings)
    if known(backend) == "bubblewrap":
        find_bwrap()


def known(backend: str) -> str:
    if backend not in RUNTIMES:
        raise SandboxError(f"runtime.backend={backend!r} is unknown: choose one of {', '.join(sorted(RUNTIMES))}")
    return backend


def read_limits(settings: Mapping[str, Any]) -> Limits:
    try:
        return Limits(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise SandboxError(f"runtime.settings.{field}={first['input']!r}: {first['msg']}") from None
