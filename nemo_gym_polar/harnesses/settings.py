# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a harness: unknown or bad ones are refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nemo_gym_polar.harnesses.base import HarnessError


class HarnessSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class McpServer(HarnessSettings):
    """A tool server that the harness talks to itself: a command inside the runtime (`stdio`) or a URL."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http"] = "stdio"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _reachable(self) -> McpServer:
        wanted = "command" if self.transport == "stdio" else "url"
        if not getattr(self, wanted):
            raise ValueError(f"MCP server {self.name!r} has no {wanted}, which transport {self.transport!r} needs")
        return self


class AgentSettings(HarnessSettings):
    """What every preset takes. A preset whose agent can't do one of these refuses it by name.

    `model` is the name that the agent is told instead of the session's. `args` are added to its command line, `env` to
    its environment. `skills` is a directory on the host, seen read-only inside. `max_turns` bounds its model calls
    where the agent has such a limit.
    """

    model: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    mcp_servers: tuple[McpServer, ...] = ()
    skills: Path | None = None
    max_turns: Annotated[int, Field(ge=1)] | None = None


def read[S: HarnessSettings](kind: type[S], settings: Mapping[str, Any]) -> S:
    try:
        return kind(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        known = ", ".join(kind.model_fields)
        raise HarnessError(f"agent.settings.{field}={first['input']!r}: {first['msg']} (known: {known})") from None
