# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Harnesses by name, or by the import path of a class: `package.module:Class`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from nemo_gym_polar.harnesses.base import Harness, HarnessError
from nemo_gym_polar.harnesses.claude_code import ClaudeCodeHarness
from nemo_gym_polar.harnesses.codex import CodexHarness
from nemo_gym_polar.harnesses.gemini_cli import GeminiCliHarness
from nemo_gym_polar.harnesses.opencode import OpencodeHarness
from nemo_gym_polar.harnesses.pi import PiHarness
from nemo_gym_polar.harnesses.qwen_code import QwenCodeHarness
from nemo_gym_polar.harnesses.shell import ShellHarness

HarnessClass = Callable[[Mapping[str, Any]], Harness]
HARNESSES: dict[str, HarnessClass] = {
    "claude_code": ClaudeCodeHarness,
    "codex": CodexHarness,
    "gemini_cli": GeminiCliHarness,
    "opencode": OpencodeHarness,
    "pi": PiHarness,
    "qwen_code": QwenCodeHarness,
    "shell": ShellHarness,
}


def make_harness(name: str, settings: Mapping[str, Any] | None = None) -> Harness:
    return find(name)(settings or {})


def find(name: str) -> HarnessClass:
    if name in HARNESSES:
        return HARNESSES[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        known = ", ".join(sorted(HARNESSES))
        raise HarnessError(f"agent.harness={name!r} is unknown: choose one of {known}, or give «package.module:Class»")
    try:
        found: HarnessClass = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise HarnessError(f"agent.harness={name!r} can't be imported: {error}") from None
    return found
