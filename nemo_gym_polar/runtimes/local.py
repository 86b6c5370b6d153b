# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""No sandbox, only order: a directory per session on this machine, and a process tree that ends with it.

The fallback where bubblewrap can't run. A harness sees the whole machine, the network and its own directory's name.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nemo_gym_polar.runtimes import interpreter
from nemo_gym_polar.runtimes.base import Exit, Mount
from nemo_gym_polar.runtimes.limits import Limits
from nemo_gym_polar.runtimes.supervised import INSIDE, SupervisedRuntime, supervise

MISSING = (
    "runtime=local isolates nothing: commands of the policy can read and change this user's files, use the network and "
    "signal other processes; files are bounded in size but not in number; the workspace path differs from session to "
    "session and so may first prompts. Use runtime=bubblewrap for policies that you don't trust"
)


class NoIsolationWarning(UserWarning):
    """The local runtime was chosen."""


class LocalRuntime(SupervisedRuntime):
    """`gateway_url` is the gateway's real address; mount targets in commands are replaced by their sources."""

    def __init__(self, *, gateway_url: str, mounts: Sequence[Mount] = (), limits: Limits | None = None) -> None:
        super().__init__()
        warnings.warn(MISSING, NoIsolationWarning, stacklevel=2)
        self.gateway_url = gateway_url
        self.mounts = tuple(mounts)
        self.limits = limits or Limits()
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
        return {"workspace": self.workspace, **fixed, **self.limits.supervisor(own_user=False)}

    def environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "USER", "SHELL") if name in os.environ}
        return {**inherited, "HOME": self.home, "PWD": self.workspace, "TMPDIR": self.tmp, "TERM": "dumb"}

    def explain(self, failure: str) -> str:
        return f"the local runtime did not start: {failure}"

    async def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float, log: Path | None = None
    ) -> Exit:
        placed = {name: self.place(value) for name, value in (env or {}).items()}
        return await super().run([self.place(word) for word in argv], env=placed, timeout=timeout, log=log)

    def place(self, text: str) -> str:
        for mount in self.mounts:
            text = text.replace(mount.target, str(mount.source))
        return text

    async def end(self) -> None:
        await super().end()
        shutil.rmtree(self.directory, ignore_errors=True)
