# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Codex CLI, the coding agent of `@openai/codex`: a native program that speaks the Responses API.

Under a model name that it does not know it offers the policy plain functions. What calls home, searches the web or
adds to the prompt what depends on the machine is off. Its last event says how a run went.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import Field, field_validator

from nemo_gym_polar.harnesses import skills, toml
from nemo_gym_polar.harnesses.base import About, HarnessContext, HarnessStatus, Launch, Mount, ShellTool
from nemo_gym_polar.harnesses.events import last
from nemo_gym_polar.harnesses.install import NpmPackage
from nemo_gym_polar.harnesses.settings import AgentSettings, McpServer, read
from nemo_gym_polar.harnesses.stdin import fed
from nemo_gym_polar.harnesses.verdict import common, described
from nemo_gym_polar.runtimes.base import Exit

PACKAGE = NpmPackage("codex", "0.169.0")
TARGET = "/opt/polar/harness/codex"
BUILDS = {
    "x86_64": "codex-linux-x64/vendor/x86_64-unknown-linux-musl",
    "aarch64": "codex-linux-arm64/vendor/aarch64-unknown-linux-musl",
}
KEY = "POLAR_API_KEY"
PROVIDER = "polar"
MODEL = "polar-policy"
FLAGS = ("--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--json")
# Off unless `features` says otherwise: what needs OpenAI's servers, a person, or more of the prompt than it is worth.
OFF = (
    "api_key_model_discovery",
    "apps",
    "enable_request_compression",
    "goals",
    "image_generation",
    "plugins",
    "remote_plugin",
    "shell_snapshot",
    "tool_suggest",
)
TURN_ENDS = ("turn.completed", "turn.failed", "error")
CUT = "Incomplete response returned, reason: max_output_tokens"
_COMPACT_AT = 0.8  # of the context; the rest is room for an answer and what its calls return

Attempts = Annotated[int, Field(ge=0, le=100)]


class CodexSettings(AgentSettings):
    """`model` is a name that Codex does not know, unless given: its own models' names change the tools that it offers.

    `features` are turned on or off by Codex's names for them. Past `compact_at` tokens (80 % of the context unless
    given) it summarises its history. It asks `retries` times again where a request fails or its stream breaks (4 and
    5 unless given), and gives up on a stream that is silent for `idle_seconds`. `config` is merged into config.toml.
    """

    sub_agents: bool = False
    features: dict[str, bool] = Field(default_factory=dict)
    compact_at: Annotated[int, Field(ge=1)] | None = None
    retries: Attempts | None = None
    idle_seconds: Annotated[float, Field(gt=0)] = 300.0
    config: dict[str, Any] = Field(default_factory=dict)

    @field_validator("max_turns")
    @classmethod
    def _no_such_limit(cls, value: int | None) -> int | None:
        if value is not None:
            raise ValueError("Codex has no limit of turns; set the rollouts' own max_turns in place of it")
        return value

    @field_validator("mcp_servers")
    @classmethod
    def _no_sse(cls, servers: tuple[McpServer, ...]) -> tuple[McpServer, ...]:
        for server in servers:
            if server.transport == "sse":
                raise ValueError(f"Codex does not speak sse, which MCP server {server.name!r} does; use another one")
        return servers


class CodexHarness:
    name = "codex"
    about = About(PACKAGE.version, ("responses",), ShellTool("exec_command", "cmd"))

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = read(CodexSettings, settings)

    def installed(self) -> bool:
        return PACKAGE.installed()

    def install(self) -> None:
        PACKAGE.install()

    def mounts(self) -> tuple[Mount, ...]:
        native = PACKAGE.directory / "node_modules" / "@openai" / BUILDS.get(platform.machine(), BUILDS["x86_64"])
        return Mount(native, TARGET), *skills.mounts(self.settings.skills)

    def launch(self, context: HarnessContext) -> Launch:
        home = PurePosixPath(context.home)
        config, instruction = str(home / ".codex" / "config.toml"), str(home / ".codex" / "instruction")
        files = {
            config: toml.document(self.configuration(context)).encode(),
            instruction: context.instruction.encode(),
        }
        argv = skills.linked(fed(self.command(), instruction), self.settings.skills, str(home / ".agents" / "skills"))
        env = {"CODEX_HOME": str(home / ".codex"), KEY: context.secret, **self.settings.env}
        return Launch(argv, env, files)

    def command(self) -> tuple[str, ...]:
        kept = () if self.settings.sub_agents else ("--ephemeral",)  # an agent is forked from the thread's file
        return (f"{TARGET}/bin/codex", "exec", *FLAGS, *kept, *self.settings.args, "-")

    def configuration(self, context: HarnessContext) -> dict[str, Any]:
        """The config.toml: where the model is and what it can take; the key stays out of the policy's shell."""
        settings = self.settings
        return {
            "model": settings.model or MODEL,
            "model_provider": PROVIDER,
            "model_providers": {PROVIDER: self.provider(context)},
            "model_context_window": context.context_tokens,
            "model_auto_compact_token_limit": settings.compact_at or int(context.context_tokens * _COMPACT_AT),
            "check_for_update_on_startup": False,
            "web_search": "disabled",
            "analytics": {"enabled": False},
            "history": {"persistence": "none"},
            "shell_environment_policy": {"exclude": [KEY]},
            "features": {**dict.fromkeys(OFF, False), **settings.features},
            "agents": {"enabled": settings.sub_agents},
            "skills": {"bundled": {"enabled": False}},
            "mcp_servers": {server.name: mcp(server) for server in settings.mcp_servers},
            **settings.config,
        }

    def provider(self, context: HarnessContext) -> dict[str, Any]:
        provider = {
            "name": PROVIDER,
            "base_url": f"{context.base_url}/v1",
            "env_key": KEY,
            "wire_api": "responses",
            "stream_idle_timeout_ms": int(self.settings.idle_seconds * 1000),
        }
        if self.settings.retries is not None:
            provider |= dict.fromkeys(("request_max_retries", "stream_max_retries"), self.settings.retries)
        return provider

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        """Its last event about a turn counts, and its exit code. An answer that was cut ends Codex with an error, but
        that is the policy's doing: the run counts."""
        event = last(ended.stdout, *TURN_ENDS)
        trouble = f"codex failed: {said(event)}" if event.get("type") in ("turn.failed", "error") else ""
        if verdict := common(ended, turns, trouble):
            return verdict
        if trouble.endswith(CUT):
            return "completed", ""
        if trouble or ended.code or event.get("type") != "turn.completed":
            return "failed", trouble or described(ended)
        return "completed", ""


def mcp(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"command": server.command, "args": server.args, "env": server.env}
    return {"url": server.url, "http_headers": server.headers}


def said(event: Mapping[str, Any]) -> str:
    error = event.get("error")
    message = error.get("message") if isinstance(error, dict) else event.get("message")
    return str(message or "no message")[:300]
