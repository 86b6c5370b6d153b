# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.harnesses.base import HarnessContext, HarnessError, Mount
from nemo_gym_polar.harnesses.opencode import OpencodeHarness
from nemo_gym_polar.runtimes.base import Exit

CONTEXT = HarnessContext(
    instruction="Fix it.",
    base_url="http://127.0.0.1:8399/s/one",
    secret="polar-secret",
    model="polar-policy",
    home="/home/agent",
    workspace="/workspace",
    context_tokens=32768,
    max_tokens=2048,
)
CONFIG = "/home/agent/.config/opencode/opencode.json"
INSTRUCTION = "/home/agent/.config/opencode/instruction"


def config(settings: dict[str, Any], context: HarnessContext = CONTEXT) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(OpencodeHarness(settings).launch(context).files[CONFIG])
    return value


def ended(*events: dict[str, Any], code: int | None = 0, stderr: str = "", **more: Any) -> Exit:
    output = "".join(json.dumps(event) + "\n" for event in events).encode()
    return dataclasses.replace(Exit(code, False, output, stderr.encode(), 1.0), **more)


STEP = {"type": "step_finish", "part": {"reason": "stop"}}
ERROR = {"type": "error", "error": {"name": "APIError", "data": {"message": "Refused."}}}


@pytest.mark.parametrize(
    ("api", "url"),
    [
        ("openai-compatible", "http://127.0.0.1:8399/s/one/v1"),
        ("openai", "http://127.0.0.1:8399/s/one/v1"),
        ("anthropic", "http://127.0.0.1:8399/s/one/v1"),
        ("google", "http://127.0.0.1:8399/s/one/v1beta"),
    ],
)
def test_the_provider_points_at_the_session(api: str, url: str) -> None:
    made = config({"api": api})
    (provider,) = made["provider"].values()
    assert provider["npm"] == f"@ai-sdk/{api}"
    assert provider["options"] == {"baseURL": url, "apiKey": "polar-secret"}
    assert made["model"] == "polar/polar-policy"


def test_nothing_of_the_session_is_on_the_command_line_or_in_the_environment() -> None:
    other = dataclasses.replace(CONTEXT, base_url="http://127.0.0.1:8399/s/two", secret="other")
    first, second = OpencodeHarness({}).launch(CONTEXT), OpencodeHarness({}).launch(other)
    assert (first.argv, first.env) == (second.argv, second.env)
    assert "polar-secret" not in " ".join((*first.argv, *first.env.values()))


@pytest.mark.parametrize("instruction", ["--help", '"quoted" words', "x" * 200_000, "/init"])
def test_an_instruction_comes_by_stdin_as_it_is(instruction: str) -> None:
    launch = OpencodeHarness({}).launch(dataclasses.replace(CONTEXT, instruction=instruction))
    assert launch.files[INSTRUCTION].decode() == instruction
    assert instruction not in launch.argv


def test_there_is_room_left_in_the_context() -> None:
    """With none, OpenCode sums its history up for ever."""
    whole = dataclasses.replace(CONTEXT, max_tokens=CONTEXT.context_tokens)
    (provider,) = config({}, whole)["provider"].values()
    assert provider["models"]["polar-policy"]["limit"] == {"context": 32768, "output": 8192}


def test_settings_reach_opencode(tmp_path: Path) -> None:
    settings = {
        "model": "other",
        "args": ["--variant", "high"],
        "env": {"A": "b"},
        "max_turns": 7,
        "tools": ["bash", "read"],
        "skills": str(tmp_path),
        "mcp_servers": [
            {"name": "box", "command": "serve", "args": ["-x"], "env": {"K": "v"}},
            {"name": "web", "transport": "streamable-http", "url": "http://h/mcp", "headers": {"H": "v"}},
        ],
        "config": {"instructions": ["RULES.md"]},
    }
    harness = OpencodeHarness(settings)
    launch, made = harness.launch(CONTEXT), config(settings)
    assert launch.argv[-2:] == ("--variant", "high")
    assert launch.env["A"] == "b"
    assert made["model"] == "polar/other"
    permission = {"*": "deny", "bash": "allow", "read": "allow"}
    assert made["agent"]["build"] == {"steps": 7, "permission": permission}
    assert made["mcp"]["box"] == {"type": "local", "command": ["serve", "-x"], "environment": {"K": "v"}}
    assert made["mcp"]["web"] == {"type": "remote", "url": "http://h/mcp", "headers": {"H": "v"}, "oauth": False}
    assert made["instructions"] == ["RULES.md"]
    assert harness.mounts()[-1] == Mount(tmp_path, "/opt/polar/skills")
    assert launch.argv[4:6] == ("/opt/polar/skills", "/home/agent/.config/opencode/skills")


def test_it_calls_nobody_and_rewrites_nothing() -> None:
    env = OpencodeHarness({}).launch(CONTEXT).env
    for name in ("AUTOUPDATE", "MODELS_FETCH", "SHARE", "PRUNE", "LSP_DOWNLOAD"):
        assert env[f"OPENCODE_DISABLE_{name}"] == "1"
    assert "--title" in OpencodeHarness({}).launch(CONTEXT).argv


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modle": "x"}, r"agent\.settings\.modle='x'.*known: model"),
        ({"api": "x"}, r"agent\.settings\.api='x'"),
        ({"mcp_servers": [{"name": "box"}]}, r"MCP server 'box' has no command"),
        ({"max_turns": 0}, r"agent\.settings\.max_turns=0"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        OpencodeHarness(settings)


@pytest.mark.parametrize(
    ("exit_", "turns", "status", "why"),
    [
        (ended(STEP), 2, "completed", ""),
        (ended(STEP, ERROR), 2, "failed", "Refused."),
        (ended(ERROR, STEP), 2, "completed", ""),
        (
            ended(ERROR, code=1),
            0,
            "failed",
            "never got an answer from the model (opencode ended with an error: Refused.)",
        ),
        (ended({"type": "error", "error": "odd"}), 2, "failed", "odd"),
        (ended({"type": "error", "error": {"name": "Odd"}}), 2, "failed", "Odd"),
        (ended(code=1, stderr="boom"), 2, "failed", "exit code 1: boom"),
        (ended(STEP, code=None, timed_out=True), 2, "timeout", "stopped after"),
        (ended({"type": "text", "text": json.dumps(ERROR)}, STEP), 2, "completed", ""),
    ],
)
def test_verdicts(exit_: Exit, turns: int, status: str, why: str) -> None:
    found = OpencodeHarness({}).status(exit_, turns)
    assert found[0] == status
    assert why in found[1]
