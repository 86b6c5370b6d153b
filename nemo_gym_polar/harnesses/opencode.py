# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""OpenCode, the coding agent of `opencode-ai`: one native program, sub-agents by its `task` tool.

Its instruction comes by stdin, because it puts quotation marks around an argument. It compacts its history when the
model's context is full; it does not prune old tool results, which would break the chain of tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import Field

from nemo_gym_polar.harnesses import skills
from nemo_gym_polar.harnesses.base import About, HarnessContext, HarnessStatus, Launch, Mount, ShellTool
from nemo_gym_polar.harnesses.events import events
from nemo_gym_polar.harnesses.install import NpmPackage
from nemo_gym_polar.harnesses.settings import AgentSettings, McpServer, read
from nemo_gym_polar.harnesses.stdin import fed
from nemo_gym_polar.harnesses.verdict import common, described
from nemo_gym_polar.runtimes.base import Exit

PACKAGE = NpmPackage("opencode", "1.18.33")
TARGET = "/opt/polar/harness/opencode"
PROGRAM = "node_modules/opencode-linux-x64-baseline/bin/opencode"
PROVIDER = "polar"
AGENT = "build"
QUIET = dict.fromkeys(
    (
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_PRUNE",
        "OPENCODE_DISABLE_SHARE",
    ),
    "1",
)

Api = Literal["openai-compatible", "openai", "anthropic", "google"]
SUFFIX: dict[Api, str] = {"openai-compatible": "/v1", "openai": "/v1", "anthropic": "/v1", "google": "/v1beta"}


class OpencodeSettings(AgentSettings):
    """`api` is the client of `@ai-sdk` that it uses; `tools`, if given, are all that the main agent may call.

    `reasoning` says that the model thinks, so that its thinking is sent back. OpenCode asks the model to end at
    `max_turns`, but does not make it; the rollout service's limit does. `config` is merged into opencode.json.
    """

    api: Api = "openai-compatible"
    reasoning: bool = True
    tools: tuple[str, ...] = ()
    config: dict[str, Any] = Field(default_factory=dict)


class OpencodeHarness:
    name = "opencode"
    about = About(
        PACKAGE.version,
        ("chat", "responses", "messages", "generate_content"),
        ShellTool("bash", "command", {"description": "Runs it"}),
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = read(OpencodeSettings, settings)

    def installed(self) -> bool:
        return PACKAGE.installed()

    def install(self) -> None:
        PACKAGE.install()

    def mounts(self) -> tuple[Mount, ...]:
        return Mount(PACKAGE.directory, TARGET), *skills.mounts(self.settings.skills)

    def launch(self, context: HarnessContext) -> Launch:
        home = PurePosixPath(context.home, ".config", "opencode")
        instruction = str(home / "instruction")
        files = {
            str(home / "opencode.json"): json.dumps(self.configuration(context)).encode(),
            instruction: context.instruction.encode(),
        }
        argv = skills.linked(fed(self.command(), instruction), self.settings.skills, str(home / "skills"))
        return Launch(argv, {**QUIET, **self.settings.env}, files)

    def command(self) -> tuple[str, ...]:
        """Without a title of its own, OpenCode would ask the model for one."""
        return (f"{TARGET}/{PROGRAM}", "run", "--auto", "--format", "json", "--title", "task", *self.settings.args)

    def configuration(self, context: HarnessContext) -> dict[str, Any]:
        model = self.settings.model or context.model
        steps = {} if self.settings.max_turns is None else {"steps": self.settings.max_turns}
        return {
            "autoupdate": False,
            "share": "disabled",
            "model": f"{PROVIDER}/{model}",
            "small_model": f"{PROVIDER}/{model}",
            "provider": {PROVIDER: self.provider(context, model)},
            "agent": {AGENT: {**steps, **self.permissions()}},
            "mcp": {server.name: mcp(server) for server in self.settings.mcp_servers},
            **self.settings.config,
        }

    def provider(self, context: HarnessContext, model: str) -> dict[str, Any]:
        """OpenCode keeps room for the longest answer, and compacts its history for ever if nothing is left of the
        context; so an answer gets a quarter of it at most."""
        answer = min(context.max_tokens, context.context_tokens // 4)
        entry = {
            "name": model,
            "reasoning": self.settings.reasoning,
            "tool_call": True,
            "limit": {"context": context.context_tokens, "output": answer},
        }
        return {
            "npm": f"@ai-sdk/{self.settings.api}",
            "name": PROVIDER,
            "options": {"baseURL": context.base_url + SUFFIX[self.settings.api], "apiKey": context.secret},
            "models": {model: entry},
        }

    def permissions(self) -> dict[str, Any]:
        if not self.settings.tools:
            return {}
        return {"permission": {"*": "deny", **dict.fromkeys(self.settings.tools, "allow")}}

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        """An error event after the last answer is the end of the run, whatever the exit code."""
        trouble = last_trouble(ended.stdout)
        if verdict := common(ended, turns, trouble):
            return verdict
        if trouble:
            return "failed", trouble
        return ("failed", described(ended)) if ended.code else ("completed", "")


def mcp(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"type": "local", "command": [server.command, *server.args], "environment": server.env}
    return {"type": "remote", "url": server.url, "headers": server.headers, "oauth": False}


def last_trouble(output: bytes) -> str:
    """What OpenCode said went wrong and did not get over, or «»."""
    trouble = ""
    for event in events(output):
        if event.get("type") == "error":
            trouble = f"opencode ended with an error: {message(event.get('error'))}"
        elif event.get("type") == "step_finish":
            trouble = ""
    return trouble


def message(error: Any) -> str:
    """The words in an error event, whose shape differs with the error."""
    data = error.get("data") if isinstance(error, dict) else None
    told = data.get("message") if isinstance(data, dict) else None
    name = error.get("name") if isinstance(error, dict) else None
    return str(told or name or error)[:300]
