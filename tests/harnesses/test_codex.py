# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.harnesses.base import HarnessContext, HarnessError
from nemo_gym_polar.harnesses.codex import CodexHarness
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
COMPLETED = {"type": "turn.completed", "usage": {}}
FAILED = {"type": "turn.failed", "error": {"message": "no luck"}}
CUT = {"type": "turn.failed", "error": {"message": "Incomplete response returned, reason: max_output_tokens"}}
LOST = {"type": "error", "message": "Reconnecting... 1/5"}


def configuration(**settings: Any) -> dict[str, Any]:
    launch = CodexHarness(settings).launch(CONTEXT)
    return tomllib.loads(launch.files["/home/agent/.codex/config.toml"].decode())


def ended(*events: dict[str, Any], code: int | None = 0, **more: Any) -> Exit:
    output = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return dataclasses.replace(Exit(code, False, output, b"", 1.0), **more)


def test_it_is_known_by_name() -> None:
    assert isinstance(make_harness("codex"), CodexHarness)


def test_the_provider_points_at_the_session() -> None:
    config = configuration()
    provider = config["model_providers"][config["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:8399/s/one/v1"
    assert (provider["wire_api"], provider["env_key"]) == ("responses", "POLAR_API_KEY")
    assert (config["model_context_window"], config["model_auto_compact_token_limit"]) == (32768, 26214)


def test_the_key_is_in_the_environment_of_codex_but_of_no_command_that_it_runs() -> None:
    launch = CodexHarness({}).launch(CONTEXT)
    assert launch.env["POLAR_API_KEY"] == "polar-secret"
    assert configuration()["shell_environment_policy"] == {"exclude": ["POLAR_API_KEY"]}
    assert all(b"polar-secret" not in content for content in launch.files.values())


def test_nothing_of_the_session_is_on_the_command_line() -> None:
    other = dataclasses.replace(CONTEXT, base_url="http://127.0.0.1:8399/s/two", secret="other", instruction="No.")
    assert CodexHarness({}).launch(CONTEXT).argv == CodexHarness({}).launch(other).argv


def test_the_model_is_one_that_codex_does_not_know_unless_given() -> None:
    assert configuration()["model"] == "polar-policy"
    assert configuration(model="gpt-5.5")["model"] == "gpt-5.5"


def test_what_calls_home_is_off_unless_turned_on() -> None:
    config = configuration(features={"apps": True, "memories": False})
    assert (config["web_search"], config["analytics"]) == ("disabled", {"enabled": False})
    assert config["features"] == {**configuration()["features"], "apps": True, "memories": False}
    assert configuration()["features"]["apps"] is False


@pytest.mark.parametrize("on", [False, True])
def test_sub_agents(on: bool) -> None:
    assert configuration(sub_agents=on)["agents"] == {"enabled": on}


def test_retries_idleness_and_compaction() -> None:
    config = configuration(retries=0, idle_seconds=1.5, compact_at=9000)
    provider = config["model_providers"]["polar"]
    assert (provider["request_max_retries"], provider["stream_max_retries"]) == (0, 0)
    assert provider["stream_idle_timeout_ms"] == 1500
    assert config["model_auto_compact_token_limit"] == 9000
    assert "stream_max_retries" not in configuration()["model_providers"]["polar"]


def test_mcp_servers() -> None:
    servers = [
        {"name": "here", "command": "serve", "args": ["-v"], "env": {"A": "b"}},
        {"name": "there", "transport": "streamable-http", "url": "http://x/mcp", "headers": {"k": "v"}},
    ]
    assert configuration(mcp_servers=servers)["mcp_servers"] == {
        "here": {"command": "serve", "args": ["-v"], "env": {"A": "b"}},
        "there": {"url": "http://x/mcp", "http_headers": {"k": "v"}},
    }


def test_args_env_and_config_are_added() -> None:
    launch = CodexHarness({"args": ["--strict-config"], "env": {"A": "b"}}).launch(CONTEXT)
    assert launch.argv[-2:] == ("--strict-config", "-")
    assert launch.env["A"] == "b"
    assert configuration(config={"project_doc_max_bytes": 0})["project_doc_max_bytes"] == 0


def test_skills_are_shown_where_codex_looks(tmp_path: Path) -> None:
    harness = CodexHarness({"skills": str(tmp_path)})
    assert harness.mounts()[-1].source == tmp_path
    assert "/home/agent/.agents/skills" in harness.launch(CONTEXT).argv


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_turns": 3}, "max_turns=3: .*no limit of turns"),
        ({"mcp_servers": [{"name": "x", "transport": "sse", "url": "http://x"}]}, "does not speak sse.*'x'"),
        ({"retries": -1}, "retries=-1"),
        ({"modle": "x"}, "modle='x'.*known: model"),
    ],
)
def test_what_codex_can_not_do_is_refused_by_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(HarnessError, match=named):
        CodexHarness(settings)


@pytest.mark.parametrize(
    ("end", "turns", "status", "said"),
    [
        (ended(COMPLETED), 1, "completed", ""),
        (ended(LOST, COMPLETED), 2, "completed", ""),
        (ended(CUT, code=1), 2, "completed", ""),
        (ended(LOST, FAILED, code=1), 2, "failed", "codex failed: no luck"),
        (ended(LOST, code=1), 2, "failed", "codex failed: Reconnecting... 1/5"),
        (ended(FAILED, code=1), 0, "failed", "never got an answer from the model (codex failed: no luck)"),
        (ended(COMPLETED, code=1), 1, "failed", "exit code 1"),
        (ended(), 1, "failed", "exit code 0"),
        (ended({"type": "turn.started"}, code=None, timed_out=True), 1, "timeout", "stopped after"),
    ],
)
def test_the_verdict(end: Exit, turns: int, status: str, said: str) -> None:
    found, why = CodexHarness({}).status(end, turns)
    assert found == status
    assert said in why


def test_output_that_is_cut_or_no_json_is_passed_over() -> None:
    end = ended(COMPLETED)
    noisy = dataclasses.replace(end, stdout=b'ut":1}\n[1]\n' + end.stdout + b"WARNING: bye\n")
    assert CodexHarness({}).status(noisy, 1) == ("completed", "")
