# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Pi, the coding agent of `@earendil-works/pi-coding-agent`: four tools, a short prompt, no approvals.

Its exit code says nothing in JSON mode and little in text mode, so its verdict is read from its output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from nemo_gym_polar.harnesses import compile_cache, node, skills
from nemo_gym_polar.harnesses.base import About, HarnessContext, HarnessError, HarnessStatus, Launch, Mount
from nemo_gym_polar.harnesses.install import NpmPackage
from nemo_gym_polar.harnesses.settings import AgentSettings, read
from nemo_gym_polar.harnesses.stdin import fed
from nemo_gym_polar.harnesses.verdict import common, described
from nemo_gym_polar.runtimes.base import Exit

PACKAGE = NpmPackage("pi", "0.87.1")
TARGET = "/opt/polar/harness/pi"
CLI = "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
PROVIDER = "polar"
MAX_ARGUMENT = 100_000  # bytes; the kernel takes 128 KiB in one argument
QUIET = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
STOP_REASON = re.compile(rb'"stopReason":"(\w+)"')
ERROR_MESSAGE = re.compile(rb'"errorMessage":("(?:[^"\\]|\\.)*")')

Api = Literal["openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai"]
SUFFIX: dict[Api, str] = {
    "openai-completions": "/v1",
    "openai-responses": "/v1",
    "anthropic-messages": "",
    "google-generative-ai": "/v1beta",
}


class PiSettings(AgentSettings):
    """`config` becomes Pi's settings.json; `tools`, if given, are all that it may call."""

    api: Api = "openai-completions"
    output: Literal["json", "text"] = "json"
    reasoning: bool = False
    tools: tuple[str, ...] = ()
    config: dict[str, Any] = Field(default_factory=dict)


class PiHarness:
    name = "pi"
    about = About(PACKAGE.version, ("chat", "responses", "messages", "generate_content"))

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = read(PiSettings, settings)
        if self.settings.mcp_servers:
            names = ", ".join(server.name for server in self.settings.mcp_servers)
            raise HarnessError(f"agent.settings.mcp_servers={names}: Pi speaks no MCP; leave it out")
        if self.settings.max_turns is not None:
            limit = f"agent.settings.max_turns={self.settings.max_turns}: Pi has no such limit"
            raise HarnessError(f"{limit}; give the rollout service a max_turns, which the gateway keeps")

    def installed(self) -> bool:
        return PACKAGE.installed()

    def install(self) -> None:
        once = PiHarness({"config": {"retry": {"enabled": False}}})
        PACKAGE.install(lambda directory: compile_cache.warm(directory, TARGET, once.launch))

    def mounts(self) -> tuple[Mount, ...]:
        return node.mount(), Mount(PACKAGE.directory, TARGET), *skills.mounts(self.settings.skills)

    def launch(self, context: HarnessContext) -> Launch:
        model = self.settings.model or context.model
        home = Path(context.home) / ".pi" / "agent"
        files = {str(home / "models.json"): self.models(context, model)}
        if self.settings.config:
            files[str(home / "settings.json")] = encoded(self.settings.config)
        argv = self.command(model)
        if len(context.instruction.encode()) < MAX_ARGUMENT and not context.instruction.startswith("@"):
            argv = (*argv, "--", context.instruction)
        else:  # too long for an argument, or Pi would take it for a file's name
            files[prompt := str(home / "instruction")] = context.instruction.encode()
            argv = fed(argv, prompt)
        return Launch(argv, {**QUIET, **compile_cache.environment(TARGET), **self.settings.env}, files)

    def command(self, model: str) -> tuple[str, ...]:
        tools = ("--tools", ",".join(self.settings.tools)) if self.settings.tools else ()
        known = ("--skill", skills.TARGET) if self.settings.skills else ()
        chosen = ("--provider", PROVIDER, "--model", model, "--mode", self.settings.output, "--no-session")
        return (node.INSIDE, f"{TARGET}/{CLI}", "-p", *chosen, *tools, *known, *self.settings.args)

    def models(self, context: HarnessContext, model: str) -> bytes:
        """Pi's models.json: one provider, one model, free of charge."""
        compat = {"supportsDeveloperRole": False, "supportsStore": False, "supportsReasoningEffort": False}
        entry = {
            "id": model,
            "name": model,
            "reasoning": self.settings.reasoning,
            "input": ["text", "image"],
            "contextWindow": context.context_tokens,
            "maxTokens": context.max_tokens,
            "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0),
            "compat": {**compat, "maxTokensField": "max_tokens"},
        }
        url = context.base_url + SUFFIX[self.settings.api]
        provider = {"baseUrl": url, "api": self.settings.api, "apiKey": context.secret, "models": [entry]}
        return encoded({"providers": {PROVIDER: provider}})

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        """In JSON mode the last answer's stop reason counts; in text mode the exit code, and that Pi said something."""
        trouble = last_trouble(ended.stdout) if self.settings.output == "json" else ""
        if verdict := common(ended, turns, trouble):
            return verdict
        if trouble:
            return "failed", trouble
        if self.settings.output == "json" and STOP_REASON.search(ended.stdout):
            return "completed", ""
        return ("failed", described(ended)) if ended.code or not ended.stdout.strip() else ("completed", "")


def last_trouble(output: bytes) -> str:
    """What went wrong in the last answer, or «»; what went wrong before, Pi got over."""
    reasons = STOP_REASON.findall(output)
    if not reasons or reasons[-1] not in (b"error", b"aborted"):
        return ""
    messages = ERROR_MESSAGE.findall(output)
    return f"pi ended with «{reasons[-1].decode()}»: {json.loads(messages[-1])[:300] if messages else 'no message'}"


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
