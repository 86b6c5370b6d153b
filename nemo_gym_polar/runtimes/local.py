# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""No sandbox, only order: a directory per session on this machine, and a process tree that ends with it.

The fallback where bubblewrap can't run. A harness sees the whole machine, the network and its own directory's name.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nemo_gym_polar.runtimes import cpus, interpreter, leftovers
from nemo_gym_polar.runtimes.base import NO_NEEDS, Exit, Mount, Needs, SandboxError
from nemo_gym_polar.runtimes.limits import Limits
from nemo_gym_polar.runtimes.supervised import INSIDE, SupervisedRuntime, supervise

MISSING = (
    "runtime=local isolates nothing: commands of the policy can read and change this user's files, use the network and "
    "signal other processes; files are bounded in size but not in number; the workspace path differs from session to "
    "session and so may first prompts. Use runtime=bubblewrap for policies that you don't trust"
)


class NoIsolationWarning(UserWarning):
    """The local runtime was chosen."""


def check_needs(needs: Needs) -> None:
    """Raise `SandboxError` for what can't be given without a sandbox, rather than run without it."""
    refused = {
        "image": needs.image,
        "workdir": needs.workdir,
        "storage_mb": needs.storage_mb,
        "gpus": needs.gpus,
        "network": needs.network if needs.network == "none" else None,
        "allow_internet": needs.allow_internet if needs.allow_internet is False else None,
    }
    for name, value in refused.items():
        if value or value is False:
            raise SandboxError(
                f"runtime.{name}={value!r}: runtime=local can't give that; drop it, or choose bubblewrap"
            )


class LocalRuntime(SupervisedRuntime):
    """`gateway_url` is the gateway's real address; mount targets in commands are replaced by their sources."""

    def __init__(
        self, *, gateway_url: str, mounts: Sequence[Mount] = (), limits: Limits | None = None, needs: Needs = NO_NEEDS
    ) -> None:
        super().__init__()
        warnings.warn(MISSING, NoIsolationWarning, stacklevel=2)
        self.gateway_url = gateway_url
        self.mounts = tuple(mounts)
        self.limits = limits or Limits()
        self.needs = needs
        self.directory = Path(tempfile.mkdtemp(prefix="polar-"))
        self.workspace = str(self.directory / "workspace")
        self.home = str(self.directory / "home")

    async def start(self) -> None:
        for path in (self.workspace, self.home, self.tmp):
            os.makedirs(path, exist_ok=True)  # noqa: PTH103 - the protocol's paths are strings
        await super().start()

    @property
    def tmp(self) -> str:
        return str(self.directory / "tmp")

    def command(self, config: str) -> list[str]:
        return [str(interpreter.host()), "-I", "-S", "-c", supervise(str(INSIDE.parent)), config]

    def config(self) -> dict[str, Any]:
        fixed = {"namespace": False, "become": None, "gateway": None, "remove": str(self.directory)}
        return {**fixed, "cpus": cpus.choose(self.needs.cpus), **self.limits.supervisor(own_user=False)}

    def environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "USER", "SHELL") if name in os.environ}
        return {**inherited, "HOME": self.home, "PWD": self.workspace, "TMPDIR": self.tmp, "TERM": "dumb"}

    def explain(self, failure: str) -> str:
        return f"the local runtime did not start: {failure}"

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float,
        log: Path | None = None,
        hidden: Sequence[str] = (),
    ) -> Exit:
        placed = {name: self.place(value) for name, value in (env or {}).items()}
        words = [self.place(word) for word in argv]
        return await super().run(words, env=placed, cwd=cwd, timeout=timeout, log=log, hidden=hidden)

    def place(self, text: str) -> str:
        for mount in self.mounts:
            text = text.replace(mount.target, str(mount.source))
        return text

    async def end(self) -> None:
        await super().end()
        await asyncio.to_thread(leftovers.kill, self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)
