# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.harnesses.base import HarnessContext, HarnessError, Mount
from nemo_gym_polar.harnesses.qwen_code import QwenCodeHarness
from nemo_gym_polar.runtimes.base import Exit

CONTEXT = HarnessContext(
    instruction="Fix it.",
    base_url="http://127.0.0.1:8399/s/one",
    secret="polar-secret",
    model="polar-policy",
    home="/home/agent",
    workspace="/workspace",
    context_tokens=65536,
    max_tokens=2048,
)
CONFIG = "/home/agent/.qwen/settings.json"
INSTRUCTION = "/home/agent/.qwen/instruction"


def config(settings: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(QwenCodeHarness(settings).launch(CONTEXT).files[CONFIG])
    return value


def ended(*events: dict[str, Any], code: int | None = 0, stderr: str = "", **more: Any) -> Exit:
    output = "".join(json.dumps(event) + "\n" for event in events).encode()
    return dataclasses.replace(Exit(code, False, output, stderr.encode(), 1.0), **more)


GOOD = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
BAD = {
    "type": "result",
    "subtype": "error_during_execution",
    "is_error": True,
    "error": {"message": "[API Error: 400]"},
}


@pytest.mark.parametrize(
    ("api", "url"),
    [
        ("openai", "http://127.0.0.1:8399/s/one/v1"),
        ("openai-responses", "http://127.0.0.1:8399/s/one/v1"),
        ("anthropic", "http://127.0.0.1:8399/s/one"),
        ("gemini", "http://127.0.0.1:8399/s/one"),
    ],
)
def test_the_settings_point_at_the_session(api: str, url: str) -> None:
    made = config({"api": api})
    assert made["security"]["auth"] == {"selectedType": api, "apiKey": "polar-secret", "baseUrl": url}
    assert made["env"] == ({"ANTHROPIC_BASE_URL": url} if api == "anthropic" else {})
    argv = QwenCodeHarness({"api": api}).launch(CONTEXT).argv
    assert argv[argv.index("--auth-type") + 1] == api


def test_nothing_of_the_session_is_on_the_command_line_or_in_the_environment() -> None:
    other = dataclasses.replace(CONTEXT, base_url="http://127.0.0.1:8399/s/two", secret="other")
    first, second = QwenCodeHarness({}).launch(CONTEXT), QwenCodeHarness({}).launch(other)
    assert (first.argv, first.env) == (second.argv, second.env)
    assert "polar-secret" not in " ".join((*first.argv, *first.env.values()))


@pytest.mark.parametrize("instruction", ["--help", "x" * 200_000, "ünï©ode\n"])
def test_an_instruction_comes_by_stdin_as_it_is(instruction: str) -> None:
    launch = QwenCodeHarness({}).launch(dataclasses.replace(CONTEXT, instruction=instruction))
    assert launch.files[INSTRUCTION].decode() == instruction
    assert instruction not in launch.argv


def test_settings_reach_qwen_code(tmp_path: Path) -> None:
    settings = {
        "model": "other",
        "args": ["--safe-mode"],
        "env": {"A": "b"},
        "max_turns": 7,
        "tools": ["run_shell_command", "read_file"],
        "skills": str(tmp_path),
        "mcp_servers": [
            {"name": "box", "command": "serve", "args": ["-x"], "env": {"K": "v"}},
            {"name": "web", "transport": "streamable-http", "url": "http://h/mcp", "headers": {"H": "v"}},
            {"name": "old", "transport": "sse", "url": "http://h/sse"},
        ],
        "config": {"output": {"format": "json"}},
    }
    harness = QwenCodeHarness(settings)
    launch, made = harness.launch(CONTEXT), config(settings)
    line = " ".join(launch.argv)
    assert "--max-session-turns 7 --core-tools run_shell_command --core-tools read_file --safe-mode" in line
    assert launch.env["A"] == "b"
    assert made["model"]["name"] == "other"
    assert made["mcpServers"]["box"] == {"command": "serve", "args": ["-x"], "env": {"K": "v"}}
    assert made["mcpServers"]["web"] == {"httpUrl": "http://h/mcp", "headers": {"H": "v"}}
    assert made["mcpServers"]["old"] == {"url": "http://h/sse", "headers": {}}
    assert made["output"] == {"format": "json"}
    assert harness.mounts()[-1] == Mount(tmp_path, "/opt/polar/skills")
    assert launch.argv[4:6] == ("/opt/polar/skills", "/home/agent/.qwen/skills")


def test_it_calls_nobody_and_rewrites_nothing() -> None:
    made = config({})
    assert made["privacy"] == {"usageStatisticsEnabled": False}
    assert made["telemetry"] == {"enabled": False}
    assert made["general"] == {"enableAutoUpdate": False}
    assert not any(made["memory"].values())
    assert set(made["context"]["clearContextOnIdle"].values()) == {-1}
    assert made["model"]["generationConfig"]["contextWindowSize"] == 65536


def test_compiled_code_is_found_in_the_sandbox() -> None:
    assert QwenCodeHarness({}).launch(CONTEXT).env["NODE_COMPILE_CACHE"].startswith("/opt/polar/harness/qwen_code/")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modle": "x"}, r"agent\.settings\.modle='x'.*known: model"),
        ({"api": "vertex-ai"}, r"agent\.settings\.api='vertex-ai'"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        QwenCodeHarness(settings)


@pytest.mark.parametrize(
    ("exit_", "turns", "status", "why"),
    [
        (ended(GOOD), 2, "completed", ""),
        (ended(BAD, code=1), 2, "failed", "«error_during_execution»: [API Error: 400]"),
        (ended(BAD), 2, "failed", "[API Error: 400]"),
        (ended(BAD, code=1), 0, "failed", "never got an answer from the model (qwen ended with"),
        (ended(code=0), 2, "failed", "exit code 0"),
        (ended({"type": "assistant"}, code=53, stderr="Reached max session turns"), 2, "timeout", "max session turns"),
        (ended(code=55, stderr="budget"), 2, "timeout", "budget"),
        (ended(code=1, stderr="boom"), 2, "failed", "exit code 1: boom"),
        (ended({"type": "user", "said": json.dumps(BAD)}, GOOD), 2, "completed", ""),
        (ended(GOOD, code=None, killed_for="output"), 2, "failed", "output"),
    ],
)
def test_verdicts(exit_: Exit, turns: int, status: str, why: str) -> None:
    found = QwenCodeHarness({}).status(exit_, turns)
    assert found[0] == status
    assert why in found[1]
