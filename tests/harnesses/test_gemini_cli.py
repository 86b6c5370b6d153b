# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.harnesses.base import HarnessContext, HarnessError, Launch
from nemo_gym_polar.harnesses.gemini_cli import ASSUMED_TOKENS, CLI, PACKAGE, TARGET, GeminiCliHarness
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.runtimes.base import Exit

CONTEXT = HarnessContext(
    instruction="@Fix it.",
    base_url="http://127.0.0.1:8399/s/one",
    secret="polar-secret",
    model="Qwen/Qwen3.5-4B",
    home="/home/agent",
    workspace="/workspace",
    context_tokens=65536,
    max_tokens=2048,
)
HOME = "/home/agent/.gemini/"
GOOD = {"type": "result", "status": "success"}
BAD = {"type": "result", "status": "error", "error": {"type": "Error", "message": "[API Error: no]"}}


def launched(**settings: Any) -> Launch:
    return GeminiCliHarness(settings).launch(CONTEXT)


def configuration(**settings: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(launched(**settings).files[HOME + "settings.json"])
    return config


def ended(*events: dict[str, Any], code: int | None = 0, **more: Any) -> Exit:
    output = b"YOLO mode is on\n" + b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return dataclasses.replace(Exit(code, False, output, b"", 1.0), **more)


def test_it_is_known_by_name() -> None:
    assert isinstance(make_harness("gemini_cli"), GeminiCliHarness)
    assert GeminiCliHarness.about.dialects == ("generate_content",)


def test_the_session_is_in_the_environment_and_the_instruction_in_a_file() -> None:
    launch = launched()
    assert launch.env["GOOGLE_GEMINI_BASE_URL"] == CONTEXT.base_url
    assert launch.env["GEMINI_API_KEY"] == CONTEXT.secret
    assert launch.files[HOME + "instruction"] == b"@Fix it."
    other = dataclasses.replace(CONTEXT, base_url="http://127.0.0.1:8399/s/two", secret="other", instruction="No.")
    assert GeminiCliHarness({}).launch(other).argv == launch.argv


def test_the_key_is_kept_from_the_commands_that_it_runs() -> None:
    redaction = configuration()["security"]["environmentVariableRedaction"]
    assert redaction["enabled"] and "GEMINI_API_KEY" in redaction["blocked"]
    assert configuration(redact=False)["security"]["environmentVariableRedaction"]["enabled"] is False


def test_what_calls_home_or_the_model_by_itself_is_off() -> None:
    config = configuration()
    assert config["privacy"] == {"usageStatisticsEnabled": False}
    assert config["telemetry"] == {"enabled": False}
    assert config["model"]["disableLoopDetection"] is True
    assert config["security"]["auth"] == {"selectedType": "gemini-api-key"}


def test_summaries_come_before_the_model_s_context_ends() -> None:
    assert configuration()["model"]["compressionThreshold"] * ASSUMED_TOKENS == pytest.approx(0.8 * 65536)
    assert configuration(compress_at=0.5)["model"]["compressionThreshold"] * ASSUMED_TOKENS == pytest.approx(32768)


def test_old_outputs_are_blanked_only_on_demand() -> None:
    launch = launched()
    flags = json.loads(launch.files[launch.env["GEMINI_EXP"]])["flags"]
    assert [int(flag["intValue"]) > 1_000_000_000 for flag in flags] == [True, True]
    assert "GEMINI_EXP" not in launched(mask_outputs=True).env


def test_the_flags_are_those_that_this_version_reads() -> None:
    if not PACKAGE.installed():
        pytest.skip("Gemini CLI is not installed")
    bundle = (PACKAGE.directory / CLI).parent
    code = b"".join(path.read_bytes() for path in bundle.glob("chunk-*.js"))
    assert b"MASKING_PROTECTION_THRESHOLD: 45758817" in code
    assert b"MASKING_PRUNABLE_THRESHOLD: 45758818" in code
    assert b"DEFAULT_TOKEN_LIMIT = 1048576" in code


def test_settings(tmp_path: Path) -> None:
    launch = launched(
        model="other", args=["--debug"], env={"A": "b"}, tools=["read_file"], exclude=["web_fetch"], max_turns=3,
        output_characters=100, skills=tmp_path, date="Monday", config={"model": {"name": "x"}, "ui": {"a": 1}},
    )  # fmt: skip
    config = json.loads(launch.files[HOME + "settings.json"])
    words = launch.argv
    assert words[words.index("--model") + 1] == "other" and words[-1] == "--debug"
    required = words.index("--require") + 1
    assert words[required : required + 3] == (HOME + "date.cjs", f"{TARGET}/{CLI}", "--model")
    assert launch.files[HOME + "date.cjs"] == b'Date.prototype.toLocaleDateString = () => "Monday";'
    assert launch.env["A"] == "b"
    assert config["tools"] == {"truncateToolOutputThreshold": 100, "core": ["read_file"], "exclude": ["web_fetch"]}
    assert (config["model"]["maxSessionTurns"], config["model"]["name"], config["ui"]) == (3, "x", {"a": 1})
    assert HOME + "skills" in words
    assert "--require" not in launched().argv


def test_tool_servers() -> None:
    servers = [
        {"name": "a", "command": "srv", "args": ["-x"], "env": {"B": "c"}},
        {"name": "b", "transport": "streamable-http", "url": "http://x/mcp", "headers": {"K": "v"}},
        {"name": "c", "transport": "sse", "url": "http://x/sse"},
    ]
    made = configuration(mcp_servers=servers)["mcpServers"]
    assert made["a"] == {"command": "srv", "args": ["-x"], "env": {"B": "c"}, "trust": True}
    assert made["b"] == {"httpUrl": "http://x/mcp", "headers": {"K": "v"}, "trust": True}
    assert made["c"]["url"] == "http://x/sse"


def test_bad_settings_are_refused_by_name() -> None:
    with pytest.raises(HarnessError, match=r"agent.settings.compress_at=0"):
        GeminiCliHarness({"compress_at": 0})
    with pytest.raises(HarnessError, match="there is no such directory"):
        GeminiCliHarness({"skills": "/no/such"}).mounts()


@pytest.mark.parametrize(
    ("end", "turns", "status", "why"),
    [
        (ended(GOOD), 2, "completed", ""),
        (ended(BAD), 2, "failed", "gemini ended with «Error»: [API Error: no]"),
        (ended(BAD), 0, "failed", "never got an answer from the model (gemini ended with"),
        (ended({"type": "error", "severity": "error", "message": "empty"}, {**GOOD, "status": "error"}), 2, "failed",
         "«error»: empty"),
        (ended({"type": "error", "severity": "warning", "message": "x"}, GOOD), 2, "completed", ""),
        (ended(), 2, "failed", "exit code 0"),
        (ended({"type": "init"}, code=1), 2, "failed", "exit code 1"),
        (ended({**BAD, "error": {"type": "FatalTurnLimitedError"}}, code=53), 2, "timeout", "max_turns=7"),
        (ended(timed_out=True), 2, "timeout", "stopped after 1 s"),
        (dataclasses.replace(ended(GOOD), stdout=b'{"type": "init"}\n{"type": "resu'), 2, "failed", "exit code 0"),
    ],
)  # fmt: skip
def test_the_verdict_is_read_from_the_events(end: Exit, turns: int, status: str, why: str) -> None:
    found, reason = GeminiCliHarness({"max_turns": 7}).status(end, turns)
    assert found == status
    assert why in reason
