# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Qwen Code, the coding agent of `@qwen-code/qwen-code`: many tools, a long prompt, four provider APIs.

Its memory agents are off, since they call the model behind the task's back, and so is the clearing of old tool
results, which would break the chain of tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import Field

from nemo_gym_polar.harnesses import compile_cache, node, skills
from nemo_gym_polar.harnesses.base import About, HarnessContext, HarnessStatus, Launch, Mount, ShellTool
from nemo_gym_polar.harnesses.events import last
from nemo_gym_polar.harnesses.install import NpmPackage
from nemo_gym_polar.harnesses.settings import AgentSettings, McpServer, read
from nemo_gym_polar.harnesses.stdin import fed
from nemo_gym_polar.harnesses.verdict import common, described
from nemo_gym_polar.runtimes.base import Exit

PACKAGE = NpmPackage("qwen_code", "0.24.4")
TARGET = "/opt/polar/harness/qwen_code"
CLI = "node_modules/@qwen-code/qwen-code/cli-entry.js"

Api = Literal["openai", "openai-responses", "anthropic", "gemini"]
LIMITS = (53, 55)  # exit codes: as many turns as were allowed, or another limit of its own
SUFFIX: dict[Api, str] = {"openai": "/v1", "openai-responses": "/v1", "anthropic": "", "gemini": ""}


class QwenCodeSettings(AgentSettings):
    """`api` is what Qwen Code calls its authentication type. `tools`, if given, are the only ones for files, shell and
    web that it may call; it keeps those that manage itself, such as skills and goals. `config` is merged into its
    settings.json.
    """

    api: Api = "openai"
    tools: tuple[str, ...] = ()
    config: dict[str, Any] = Field(default_factory=dict)


class QwenCodeHarness:
    name = "qwen_code"
    about = About(
        PACKAGE.version,
        ("chat", "responses", "messages", "generate_content"),
        ShellTool("run_shell_command", "command", {"description": "Runs it", "is_background": "false"}),
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = read(QwenCodeSettings, settings)

    def installed(self) -> bool:
        return PACKAGE.installed()

    def install(self) -> None:
        PACKAGE.install(lambda directory: compile_cache.warm(directory, TARGET, QwenCodeHarness({}).launch))

    def mounts(self) -> tuple[Mount, ...]:
        return node.mount(), Mount(PACKAGE.directory, TARGET), *skills.mounts(self.settings.skills)

    def launch(self, context: HarnessContext) -> Launch:
        home = PurePosixPath(context.home, ".qwen")
        files = {str(home / "settings.json"): json.dumps(self.configuration(context)).encode()}
        instruction = str(home / "instruction")
        files[instruction] = context.instruction.encode()
        argv = skills.linked(fed(self.command(), instruction), self.settings.skills, str(home / "skills"))
        env = {"QWEN_CODE_SUPPRESS_YOLO_WARNING": "1", **compile_cache.environment(TARGET), **self.settings.env}
        return Launch(argv, env, files)

    def command(self) -> tuple[str, ...]:
        turns = ("--max-session-turns", str(self.settings.max_turns)) if self.settings.max_turns else ()
        tools = tuple(word for tool in self.settings.tools for word in ("--core-tools", tool))
        chosen = ("--auth-type", self.settings.api, "--yolo", "--output-format", "stream-json")
        return (node.INSIDE, f"{TARGET}/{CLI}", *chosen, *turns, *tools, *self.settings.args)

    def configuration(self, context: HarnessContext) -> dict[str, Any]:
        """The settings.json: where the model is, and nothing that calls home or the model by itself."""
        auth = {
            "selectedType": self.settings.api,
            "apiKey": context.secret,
            "baseUrl": context.base_url + SUFFIX[self.settings.api],
        }
        model = {
            "name": self.settings.model or context.model,
            "generationConfig": {"contextWindowSize": context.context_tokens, "enableCacheControl": False},
        }
        return {
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
            "context": {
                "clearContextOnIdle": {"toolResultsThresholdMinutes": -1, "toolResultsTotalCharsThreshold": -1}
            },
            "security": {"auth": auth},
            "env": {"ANTHROPIC_BASE_URL": auth["baseUrl"]} if self.settings.api == "anthropic" else {},
            "model": model,
            "mcpServers": {server.name: mcp(server) for server in self.settings.mcp_servers},
            **self.settings.config,
        }

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        """Its last event says how the run went; without one it did not come to an end of its own."""
        result = last(ended.stdout, "result")
        trouble = f"qwen ended with «{result.get('subtype')}»: {said(result)}" if result.get("is_error") else ""
        if verdict := common(ended, turns, trouble):
            return verdict
        if ended.code in LIMITS:
            return "timeout", described(ended)
        if trouble or ended.code or not result:
            return "failed", trouble or described(ended)
        return "completed", ""


def mcp(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"command": server.command, "args": server.args, "env": server.env}
    url = "httpUrl" if server.transport == "streamable-http" else "url"
    return {url: server.url, "headers": server.headers}


def said(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or result.get("result") or "no message")[:300]
