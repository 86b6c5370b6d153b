# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.harnesses.base import HarnessContext, HarnessError, Launch
from nemo_gym_polar.harnesses.claude_code import ClaudeCodeHarness, native
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.runtimes.base import Exit

CONTEXT = HarnessContext(
    instruction="Fix it.",
    base_url="http://127.0.0.1:8399/s/one",
    secret="polar-secret",
    model="Qwen/Qwen3.5-4B",
    home="/home/agent",
    workspace="/workspace",
    context_tokens=32768,
    max_tokens=2048,
)
HOME = "/home/agent/.claude"
SUCCESS = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
REFUSED = {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 400 no"}
TURNS = {"type": "result", "subtype": "error_max_turns", "is_error": True, "errors": ["Reached maximum"]}
BROKEN = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["boom"]}


def launch(**settings: Any) -> Launch:
    return ClaudeCodeHarness(settings).launch(CONTEXT)


def line(**settings: Any) -> str:
    return " ".join(launch(**settings).argv)


def ended(*events: dict[str, Any], code: int | None = 0, **more: Any) -> Exit:
    output = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return dataclasses.replace(Exit(code, False, output, b"", 1.0), **more)


def test_it_is_known_by_name() -> None:
    assert isinstance(make_harness("claude_code"), ClaudeCodeHarness)


def test_it_points_at_the_session_and_hides_the_key_from_commands() -> None:
    made = launch()
    assert made.env["ANTHROPIC_BASE_URL"] == CONTEXT.base_url
    assert made.files[f"{HOME}/key"] == b"polar-secret"
    assert json.loads(made.files[f"{HOME}/settings.json"]) == {"apiKeyHelper": f"cat {HOME}/key"}
    assert "polar-secret" not in " ".join((*made.argv, *made.env.values()))


def test_only_the_url_tells_sessions_apart() -> None:
    other = dataclasses.replace(CONTEXT, base_url="http://127.0.0.1:8399/s/two", secret="other")
    first, second = launch(), ClaudeCodeHarness({}).launch(other)
    assert first.argv == second.argv
    assert {name for name in first.env if first.env[name] != second.env[name]} == {"ANTHROPIC_BASE_URL"}


def test_the_instruction_comes_by_stdin() -> None:
    assert launch().files[f"{HOME}/instruction"] == b"Fix it."
    assert "Fix it." not in line()


def test_the_clean_profile_is_the_default() -> None:
    env = launch().env
    assert "--model claude-sonnet-4-5" in line() and "--disable-slash-commands" in line()
    for name in (
        "DISABLE_PROMPT_CACHING",
        "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
        "IS_SANDBOX",
        "DISABLE_TELEMETRY",
    ):
        assert env[name] == "1"
    assert (env["ENABLE_TOOL_SEARCH"], env["CLAUDE_CODE_ATTRIBUTION_HEADER"]) == ("false", "0")


@pytest.mark.parametrize(
    ("switch", "name"),
    [
        ("prompt_caching", "DISABLE_PROMPT_CACHING"),
        ("background_tasks", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"),
        ("experimental_betas", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"),
        ("tool_search", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"),
    ],
)
def test_each_can_be_turned_on_again(switch: str, name: str) -> None:
    assert name not in launch(**{switch: True}).env
    assert launch(tool_search=True).env["ENABLE_TOOL_SEARCH"] == "true"


@pytest.mark.parametrize(
    ("context_tokens", "max_tokens", "compact_at", "tokens"),
    [
        (32768, 2048, None, 26214),
        (32768, 2048, 20_000, 20_000),
        (131072, 65536, None, 104857),
        (1_000_000, 8192, None, 800_000),
    ],
)
def test_it_compacts_where_the_policy_s_context_ends(
    context_tokens: int, max_tokens: int, compact_at: int | None, tokens: int
) -> None:
    """Claude Code: a share of what its window leaves beside an answer, of at most 20 000 tokens."""
    context = dataclasses.replace(CONTEXT, context_tokens=context_tokens, max_tokens=max_tokens)
    env = ClaudeCodeHarness({"compact_at": compact_at}).launch(context).env
    window = int(env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"])
    assert window >= 100_000
    at = (window - min(max_tokens, 20_000)) * float(env["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"]) / 100
    assert at == pytest.approx(tokens, abs=1)


def test_settings_reach_the_command() -> None:
    given = {"tools": ["Bash", "Read"], "bare": True, "max_turns": 7, "args": ["--effort", "low"], "retries": 2,
             "env": {"A": "b"}, "model": "other", "config": {"includeCoAuthoredBy": False}}  # fmt: skip
    made = launch(**given)
    assert "--tools Bash,Read --bare --disable-slash-commands --max-turns 7 --effort low" in line(**given)
    assert "--model other" in line(**given)
    assert (made.env["A"], made.env["CLAUDE_CODE_MAX_RETRIES"]) == ("b", "2")
    assert json.loads(made.files[f"{HOME}/settings.json"])["includeCoAuthoredBy"] is False


def test_mcp_servers() -> None:
    servers = [
        {"name": "files", "command": "files-mcp", "args": ["-v"], "env": {"A": "b"}},
        {"name": "web", "transport": "streamable-http", "url": "http://127.0.0.1:9/mcp", "headers": {"x": "y"}},
        {"name": "old", "transport": "sse", "url": "http://127.0.0.1:9/sse"},
    ]
    configured = json.loads(launch(mcp_servers=servers).files[f"{HOME}/mcp.json"])["mcpServers"]
    assert configured["files"] == {"type": "stdio", "command": "files-mcp", "args": ["-v"], "env": {"A": "b"}}
    assert configured["web"] == {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"x": "y"}}
    assert configured["old"]["type"] == "sse"
    assert f"--mcp-config {HOME}/mcp.json --strict-mcp-config" in line(mcp_servers=servers)


def test_skills_are_shown_where_claude_code_looks(tmp_path: Path) -> None:
    harness = ClaudeCodeHarness({"skills": str(tmp_path)})
    assert tmp_path.resolve() in [mount.source for mount in harness.mounts()]
    command = " ".join(harness.launch(CONTEXT).argv)
    assert f"{HOME}/skills" in command
    assert "--disable-slash-commands" not in command


def test_the_program_fits_the_machine(tmp_path: Path) -> None:
    packages = tmp_path / "node_modules" / "@anthropic-ai"
    assert native(tmp_path).parent == packages
    musl = packages / f"{native(tmp_path).name}-musl"
    musl.mkdir(parents=True)
    assert native(tmp_path) == musl


def test_bad_settings_are_named() -> None:
    with pytest.raises(HarnessError, match=r"agent\.settings\.modle='x'.*known: "):
        ClaudeCodeHarness({"modle": "x"})


@pytest.mark.parametrize(
    ("exit_", "turns", "status", "why"),
    [
        (ended({"type": "system"}, SUCCESS), 2, "completed", ""),
        (ended(REFUSED, code=1), 2, "failed", "claude failed: API Error: 400 no"),
        (ended(REFUSED, code=1), 0, "failed", "never got an answer from the model (claude failed: API Error"),
        (ended(BROKEN, code=1), 2, "failed", "boom"),
        (ended(TURNS, code=1), 7, "timeout", "max_turns=7"),
        (ended({"type": "assistant"}), 2, "failed", "exit code 0"),
        (ended(SUCCESS, code=3), 2, "failed", "exit code 3"),
        (ended(SUCCESS, code=None, timed_out=True), 2, "timeout", "stopped after"),
        (ended(SUCCESS, code=None, killed_for="output"), 2, "failed", "output"),
    ],
)
def test_ends(exit_: Exit, turns: int, status: str, why: str) -> None:
    found = ClaudeCodeHarness({"max_turns": 7}).status(exit_, turns)
    assert found[0] == status
    assert why in found[1]


def test_what_the_policy_says_is_not_taken_for_claude_code() -> None:
    said = {"type": "assistant", "message": {"content": json.dumps(REFUSED)}}
    assert ClaudeCodeHarness({}).status(ended(SUCCESS, said), 2)[0] == "completed"
