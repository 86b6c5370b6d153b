# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Claude Code, the coding agent of `@anthropic-ai/claude-code`: a native program that speaks the Messages API.

As it comes it moves cache markers about, loads tools on the way, works in the background and compacts for Anthropic's
own context windows. Here it is told not to, and how much the policy reads; each of these can be turned on again. Its
last event says how a run went.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field

from nemo_gym_polar.harnesses import skills
from nemo_gym_polar.harnesses.base import About, HarnessContext, HarnessStatus, Launch, Mount, ShellTool
from nemo_gym_polar.harnesses.events import last
from nemo_gym_polar.harnesses.install import NpmPackage
from nemo_gym_polar.harnesses.settings import AgentSettings, McpServer, read
from nemo_gym_polar.harnesses.stdin import fed
from nemo_gym_polar.harnesses.verdict import common, described
from nemo_gym_polar.runtimes.base import Exit

PACKAGE = NpmPackage("claude_code", "2.1.329")
TARGET = "/opt/polar/harness/claude_code"
MODEL = "claude-sonnet-4-5"  # under this name it keeps all of its words in the system and user messages
FLAGS = ("--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "--no-session-persistence")
SESSION = "00000000-0000-4000-8000-000000000000"  # its own name for a run, which its commands see: the same in all
QUIET = {
    "IS_SANDBOX": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
_WINDOW = 200_000  # tokens; what it takes its model to read, and the least that leaves it free to compact earlier
_OUTPUT = 20_000  # tokens; it keeps as much of the window free for an answer, or less if answers are shorter
_COMPACT_AT = 0.8  # of the context; the rest is room for an answer and what its calls return


class ClaudeCodeSettings(AgentSettings):
    """`tools` are all that Claude Code offers, unless named. `bare` is its minimal mode: three tools, a short prompt.

    Past `compact_at` tokens (80 % of the context unless given) it summarises its history. It asks `retries` times again
    where a request fails (10 unless given). `config` is its settings.json. `slash_commands` offer its own skills too;
    they come with a `skills` directory.
    """

    tools: tuple[str, ...] = ()
    bare: bool = False
    prompt_caching: bool = False
    tool_search: bool = False
    background_tasks: bool = False
    experimental_betas: bool = False
    slash_commands: bool = False
    compact_at: Annotated[int, Field(ge=1)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    config: dict[str, Any] = Field(default_factory=dict)


class ClaudeCodeHarness:
    name = "claude_code"
    about = About(PACKAGE.version, ("messages",), ShellTool("Bash", "command", {"description": "Run a command"}))

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = read(ClaudeCodeSettings, settings)

    def installed(self) -> bool:
        return PACKAGE.installed()

    def install(self) -> None:
        PACKAGE.install()

    def mounts(self) -> tuple[Mount, ...]:
        return Mount(native(PACKAGE.directory), TARGET), *skills.mounts(self.settings.skills)

    def launch(self, context: HarnessContext) -> Launch:
        home = PurePosixPath(context.home) / ".claude"
        places = {name: str(home / name) for name in ("key", "instruction", "settings.json", "mcp.json", "skills")}
        # By a helper, so that the key is in no command's environment.
        config = {"apiKeyHelper": f"cat {places['key']}", **self.settings.config}
        files = {
            places["key"]: context.secret.encode(),
            places["instruction"]: context.instruction.encode(),
            places["settings.json"]: encoded(config),
            places["mcp.json"]: encoded({"mcpServers": {one.name: mcp(one) for one in self.settings.mcp_servers}}),
        }
        argv = fed(self.command(places), places["instruction"])
        return Launch(skills.linked(argv, self.settings.skills, places["skills"]), self.environment(context), files)

    def command(self, places: Mapping[str, str]) -> tuple[str, ...]:
        settings = self.settings
        chosen = ["--session-id", SESSION, "--model", settings.model or MODEL, "--settings", places["settings.json"]]
        chosen += ["--mcp-config", places["mcp.json"], "--strict-mcp-config"]
        if settings.tools:
            chosen += ["--tools", ",".join(settings.tools)]
        if settings.bare:
            chosen.append("--bare")
        if not (settings.slash_commands or settings.skills):
            chosen.append("--disable-slash-commands")
        if settings.max_turns is not None:
            chosen += ["--max-turns", str(settings.max_turns)]
        return (f"{TARGET}/claude", "-p", *FLAGS, *chosen, *settings.args)

    def environment(self, context: HarnessContext) -> dict[str, str]:
        settings = self.settings
        env = {**QUIET, "ANTHROPIC_BASE_URL": context.base_url, "CLAUDE_CODE_ATTRIBUTION_HEADER": "0"}
        env |= {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(context.max_tokens), **self.compaction(context)}
        off = {
            "DISABLE_PROMPT_CACHING": not settings.prompt_caching,
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": not settings.background_tasks,
            "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": not (settings.experimental_betas or settings.tool_search),
        }
        env |= {name: "1" for name, unwanted in off.items() if unwanted}
        env["ENABLE_TOOL_SEARCH"] = "true" if settings.tool_search else "false"
        if settings.retries is not None:
            env["CLAUDE_CODE_MAX_RETRIES"] = str(settings.retries)
        return {**env, **settings.env}

    def compaction(self, context: HarnessContext) -> dict[str, str]:
        """Claude Code takes a share of its window less an answer; a window below 100 000 tokens it refuses."""
        wanted = self.settings.compact_at or int(context.context_tokens * _COMPACT_AT)
        window = max(_WINDOW, context.context_tokens)
        percent = min(100.0, 100.0 * wanted / (window - min(context.max_tokens, _OUTPUT)))
        return {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(window), "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": f"{percent:.4f}"}

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        """Its last event counts, and its exit code."""
        result = last(ended.stdout, "result")
        trouble = f"claude failed: {said(result)}" if result.get("is_error") else ""
        if verdict := common(ended, turns, trouble):
            return verdict
        if result.get("subtype") == "error_max_turns":
            return "timeout", f"claude was stopped after max_turns={self.settings.max_turns} model calls"
        if trouble or ended.code or result.get("subtype") != "success":
            return "failed", trouble or described(ended)
        return "completed", ""


def native(directory: Path) -> Path:
    """The package that holds the program for this machine; npm installs the one that fits its C library."""
    name = f"claude-code-linux-{_ARCHITECTURES.get(platform.machine(), 'x64')}"
    packages = directory / "node_modules" / "@anthropic-ai"
    musl = packages / f"{name}-musl"
    return musl if musl.is_dir() else packages / name


def mcp(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"type": "stdio", "command": server.command, "args": server.args, "env": server.env}
    kind = "sse" if server.transport == "sse" else "http"
    return {"type": kind, "url": server.url, "headers": server.headers}


def said(result: Mapping[str, Any]) -> str:
    return str(result.get("result") or result.get("errors") or result.get("subtype") or "no message")[:300]


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
