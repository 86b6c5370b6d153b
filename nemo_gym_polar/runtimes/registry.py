# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Runtimes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nemo_gym_polar.runtimes.base import NO_NEEDS, Mount, Needs, Runtime, SandboxError
from nemo_gym_polar.runtimes.bubblewrap import BubblewrapRuntime, find_bwrap
from nemo_gym_polar.runtimes.bubblewrap import check_needs as check_bubblewrap
from nemo_gym_polar.runtimes.limits import Limits
from nemo_gym_polar.runtimes.local import LocalRuntime
from nemo_gym_polar.runtimes.local import check_needs as check_local


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where the gateway listens: by TCP, and by a Unix socket for sandboxes without a network."""

    url: str
    socket: Path | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """How to make a sandbox of one kind, and how to tell that it can't give what a task needs."""

    make: Callable[[GatewayAddress | None, Sequence[Mount], Limits, Needs], Runtime]
    check: Callable[[Needs], None]


def bubblewrap(gateway: GatewayAddress | None, mounts: Sequence[Mount], limits: Limits, needs: Needs) -> Runtime:
    door = gateway.socket if gateway else None
    return BubblewrapRuntime(gateway=door, mounts=mounts, limits=limits, needs=needs)


def local(gateway: GatewayAddress | None, mounts: Sequence[Mount], limits: Limits, needs: Needs) -> Runtime:
    return LocalRuntime(gateway_url=gateway.url if gateway else "", mounts=mounts, limits=limits, needs=needs)


SAME = {"memory_mb": "runtime.memory_mb", "workspace_mb": "runtime.storage_mb"}
RUNTIMES: dict[str, Backend] = {
    "bubblewrap": Backend(bubblewrap, check_bubblewrap),
    "local": Backend(local, check_local),
}


def make_runtime(
    backend: str,
    gateway: GatewayAddress | None,
    mounts: Sequence[Mount] = (),
    settings: Mapping[str, Any] | None = None,
    needs: Needs = NO_NEEDS,
) -> Runtime:
    """A runtime that is not started yet, without a gateway if None. `settings` are the fields of `Limits`."""
    found = RUNTIMES[known(backend)]
    found.check(needs)
    return found.make(gateway, mounts, read_limits(settings or {}, needs), needs)


def check_runtime(backend: str, settings: Mapping[str, Any], needs: Needs = NO_NEEDS) -> None:
    """Raise `SandboxError` now for what would make every sandbox of this kind fail."""
    read_limits(settings, needs)
    RUNTIMES[known(backend)].check(needs)
    if backend == "bubblewrap":
        find_bwrap()


def known(backend: str) -> str:
    if backend not in RUNTIMES:
        raise SandboxError(f"runtime.backend={backend!r} is unknown: choose one of {', '.join(sorted(RUNTIMES))}")
    return backend


def read_limits(settings: Mapping[str, Any], needs: Needs = NO_NEEDS) -> Limits:
    """The settings, and the task's own words for two of them."""
    asked = {"memory_mb": needs.memory_mb, "workspace_mb": needs.storage_mb}
    given = {name: value for name, value in asked.items() if value is not None}
    if twice := given.keys() & settings.keys():
        name = min(twice)
        raise SandboxError(f"runtime.settings.{name}={settings[name]!r}: the task's {SAME[name]} says it too; drop one")
    try:
        return Limits(**settings, **given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise SandboxError(f"runtime.settings.{field}={first['input']!r}: {first['msg']}") from None
