# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Any command as a harness: it finds the gateway in the environment, as most clients expect it there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from nemo_gym_polar.harnesses.base import About, HarnessContext, HarnessStatus, Launch, Mount
from nemo_gym_polar.harnesses.settings import HarnessSettings, read
from nemo_gym_polar.harnesses.verdict import by_code
from nemo_gym_polar.runtimes.base import Exit


class ShellSettings(HarnessSettings):
    """`command` is run by `bash -c`; files are written first, paths as seen inside."""

    command: str
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)


class ShellHarness:
    name = "shell"
    about = About(dialects=("chat", "responses", "messages", "generate_content"))

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = read(ShellSettings, settings)

    def installed(self) -> bool:
        return True

    def install(self) -> None:
        """Nothing to do: the command is the caller's."""

    def mounts(self) -> tuple[Mount, ...]:
        return ()

    def launch(self, context: HarnessContext) -> Launch:
        files = {path: text.encode() for path, text in self.settings.files.items()}
        env = {**provider_environment(context), **self.settings.env}
        return Launch(("bash", "-c", self.settings.command), env, files)

    def status(self, ended: Exit, turns: int) -> tuple[HarnessStatus, str]:
        return by_code(ended, turns)


def provider_environment(context: HarnessContext) -> dict[str, str]:
    """The gateway under the names that the providers' own clients read, and the task."""
    return {
        "OPENAI_BASE_URL": f"{context.base_url}/v1",
        "OPENAI_API_KEY": context.secret,
        "OPENAI_MODEL": context.model,
        "ANTHROPIC_BASE_URL": context.base_url,
        "ANTHROPIC_API_KEY": context.secret,
        "ANTHROPIC_MODEL": context.model,
        "GOOGLE_GEMINI_BASE_URL": context.base_url,
        "GEMINI_API_KEY": context.secret,
        "GEMINI_MODEL": context.model,
        "POLAR_INSTRUCTION": context.instruction,
    }
