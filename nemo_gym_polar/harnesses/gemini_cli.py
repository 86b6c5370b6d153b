# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Gemini CLI, the coding agent of `@google/gemini-cli`: many tools, a long prompt, sub-agents, one API.

It takes any model that it doesn't know for one that reads a million tokens, so its thresholds are set from what this
model reads. What it would change in the history behind the policy's back is off, and so is its detection of loops,
which asks the model about itself. Its exit code is 0 for an empty answer too, so its verdict is read from its events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import Field

from nemo_gym_polar.harnesses import compile_cache, node, skills
from nemo_gym_polar.harnesses.base import About, HarnessContext, HarnessStatus, Launch, Mount, ShellTool
from nemo_gym_polar.harnesses.events import events
from nemo_gym_polar.harnesses.install import NpmPackage
from nemo_gym_polar.harnesses.settings import AgentSettings, McpServer, read
from nemo_gym_polar.harnesses.stdin import fed
from nemo_gym_polar.harnesses.verdict import common, described
from nemo_gym_polar.runtimes.base import Exit

PACKAGE = NpmPackage("gemini_cli", "0.61.0")
TARGET = "/opt/polar/harness/gemini_cli"
CLI = "node_modules/@google/gemini-cli/bundle/gemini.js"
ASSUMED_TOKENS = 1_048_576  # what it takes the context of an unknown model for
NEVER = str(2**31 - 1)  # tokens
MASKING_FLAGS = (45758817, 45758818)  # what is protected, and the least that is worth it; only such flags set them
DATE = "Date.prototype.toLocaleDateString = () => {};"
TURN_LIMIT = "FatalTurnLimitedError"
QUIET = {
    "GEMINI_CLI_NO_RELAUNCH": "true",  # else it starts itself twice
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "NO_COLOR": "1",
}


class GeminiCliSettings(AgentSettings):
    """`tools`, if given, are all that it may call, and `exclude` none of these.

    Longer tool outputs than `output_characters` are cut. At the share `compress_at` of the model's context it has the
    history before the last words of a user summarised; there is none in a run with one instruction. With `mask_outputs`
    it blanks old tool outputs, which breaks the chain of tokens. `date` is what its first message says of the day, in
    place of today's, so that groups that run over midnight begin alike. `config` is merged into its settings.json,
    section by section.

    Commands that it runs don't see the session's key, but nor any other variable with a name like a secret's (TOKEN,
    KEY, AUTH…): that can't be told apart. With `redact` off they see all.
    """

    tools: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    output_characters: Annotated[int, Field(ge=0)] = 40_000
    compress_at: Annotated[float, Field(gt=0)] = 0.8
    mask_outputs: bool = False
    redact: bool = True
    date: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)


class GeminiCliHarness:
    name = "gemini_cli"
    about = About(
        PACKAGE.version,
        ("generate_content",),
        ShellTool("run_shell_command", "command", {"description": "Runs it"}),
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = read(GeminiCliSettings, settings)

    def installed(self) -> bool:
        return PACKAGE.installed()

    def install(self) -> None:
        once = GeminiCliHarness({"config": {"general": {"maxAttempts": 1, "retryFetchErrors": False}}})
        PACKAGE.install(lambda directory: compile_cache.warm(directory, TARGET, once.launch))

    def mounts(self) -> tuple[Mount, ...]:
        return node.mount(), Mount(PACKAGE.directory, TARGET), *skills.mounts(self.settings.skills)

    def launch(self, context: HarnessContext) -> Launch:
        home = PurePosixPath(context.home, ".gemini")
        env = {**QUIET, "GOOGLE_GEMINI_BASE_URL": context.base_url, "GEMINI_API_KEY": context.secret}
        written = {"settings.json": encoded(self.configuration(context)), "instruction": context.instruction.encode()}
        if not self.settings.mask_outputs:
            written["flags.json"] = encoded({"flags": [{"flagId": flag, "intValue": NEVER} for flag in MASKING_FLAGS]})
            env["GEMINI_EXP"] = str(home / "flags.json")
        if self.settings.date is not None:
            written["date.cjs"] = DATE.format(json.dumps(self.settings.date)).encode()
        argv = fed(self.command(context, home), str(home / "instruction"))
        argv = skills.linked(argv, self.settings.skills, str(home / "skills"))
        files = {str(home / name): data for name, data in written.items()}
        return Launch(argv, {**env, **compile_cache.environment(TARGET), **self.settings.env}, files)

    def command(self, context: HarnessContext, home: PurePosixPath) -> tuple[str, ...]:
        date = ("--require", str(home / "date.cjs")) if self.settings.date is not None else ()
        model = ("--model", self.settings.model or context.model)
        chosen = ("--yolo", "--skip-trust", "--output-format", "stream-json")
        return (node.INSIDE, *date, f"{TARGET}/{CLI}", *model, *chosen, *self.settings.args)

    def configuration(self, context: HarnessContext) -> dict[str, Any]:
        """The settings.json: nothing that calls home, or the model by itself."""
        tools: dict[str, Any] = {"truncateToolOutputThreshold": self.settings.output_characters}
        if self.settings.tools:
            tools["core"] = self.settings.tools
        if self.settings.exclude:
            tools["exclude"] = self.settings.exclude
        sections: dict[str, dict[str, Any]] = {
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}, "environmentVariableRedaction": self.redaction()},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "model": {
                "maxSessionTurns": self.settings.max_turns or -1,
                "compressionThreshold": self.settings.compress_at * context.context_tokens / ASSUMED_TOKENS,
                "disableLoopDetection": True,
            },
            "tools": tools,
            "mcpServers": {server.name: mcp(server) for server in self.settings.mcp_servers},
        }
        return merged(sections, self.settings.config)

    def redaction(self) -> dict[str, Any]:
        """Keeps the session's key and address from the commands that it runs."""
        blocked = ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_EXP", *compile_cache.environment(""))
        return {"enabled": self.settings.redact, "blocked": blocked}

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        """Its last event says how the run went; without one it did not come to an end of its own."""
        result, trouble = verdict(ended.stdout)
        if found := common(ended, turns, trouble):
            return found
        if result.get("error", {}).get("type") == TURN_LIMIT:
            return "timeout", f"gemini was stopped after max_turns={self.settings.max_turns} model calls"
        if trouble or ended.code or not result:
            return "failed", trouble or described(ended)
        return "completed", ""


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def mcp(server: McpServer) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"command": server.command, "args": server.args, "env": server.env, "trust": True}
    url = "httpUrl" if server.transport == "streamable-http" else "url"
    return {url: server.url, "headers": server.headers, "trust": True}


def merged(sections: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """`config` over `sections`: objects are merged, all else is replaced."""
    both = dict(sections)
    for name, value in config.items():
        old = both.get(name)
        both[name] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


def verdict(output: bytes) -> tuple[dict[str, Any], str]:
    """The event that ends a run, or {}, and what went wrong, or «»."""
    failures: list[str] = []
    result: dict[str, Any] = {}
    for event in events(output):
        if event.get("type") == "result":
            result = event
        elif event.get("type") == "error" and event.get("severity") == "error":
            failures.append(str(event.get("message")))
    if result.get("status") != "error":
        return result, ""
    error = result.get("error") or {}
    said = error.get("message") or (failures[-1] if failures else "no message")
    return result, f"gemini ended with «{error.get('type', 'error')}»: {said[:300]}"
