# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How to install, configure and start an agent program that stays unmodified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from nemo_gym_polar.runtimes.base import Exit, Mount

__all__ = ["About", "Harness", "HarnessContext", "HarnessError", "HarnessStatus", "Launch", "Mount", "ShellTool"]

HarnessStatus = Literal["completed", "failed", "timeout"]


class HarnessError(Exception):
    """A harness can't be found, installed or configured."""


@dataclass(frozen=True, slots=True)
class ShellTool:
    """How a policy calls the harness's shell: the tool, the argument that takes the command, what else is required."""

    name: str = "bash"
    argument: str = "command"
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a harness before it is configured: the version that was tested, the provider APIs that it
    speaks (the one it speaks unless told otherwise comes first), its shell tool."""

    version: str = ""
    dialects: tuple[str, ...] = ()
    shell_tool: ShellTool = ShellTool()


@dataclass(frozen=True, slots=True)
class HarnessContext:
    """What a harness needs to know of its session; paths and URL as seen inside the runtime."""

    instruction: str
    base_url: str  # …/s/{session}, without a dialect's own suffix
    secret: str = field(repr=False)
    model: str
    home: str
    workspace: str
    context_tokens: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Launch:
    """One headless run: files to write first (path inside → bytes), then the command with its environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


class Harness(Protocol):
    name: str
    about: About

    def installed(self) -> bool: ...

    def install(self) -> None: ...

    def mounts(self) -> tuple[Mount, ...]: ...

    def launch(self, context: HarnessContext) -> Launch: ...

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]: ...
