# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.harnesses.base import HarnessContext, HarnessError, Mount
from nemo_gym_polar.harnesses.pi import PiHarness
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
MODELS = "/home/agent/.pi/agent/models.json"


def ended(stdout: str = "", stderr: str = "", code: int | None = 0, **more: object) -> Exit:
    return dataclasses.replace(Exit(code, False, stdout.encode(), stderr.encode(), 1.0), **more)


def event(reason: str, message: str | None = None) -> str:
    answer = {"role": "assistant", "content": [], "stopReason": reason}
    answer |= {"errorMessage": message} if message is not None else {}
    return json.dumps({"type": "message_end", "message": answer}, separators=(",", ":"), ensure_ascii=False) + "\n"


def test_the_provider_points_at_the_session() -> None:
    launch = PiHarness({}).launch(CONTEXT)
    (provider,) = json.loads(launch.files[MODELS])["providers"].values()
    assert provider["baseUrl"] == "http://127.0.0.1:8399/s/one/v1"
    assert (provider["api"], provider["apiKey"]) == ("openai-completions", "polar-secret")
    assert (provider["models"][0]["contextWindow"], provider["models"][0]["maxTokens"]) == (32768, 2048)


def test_the_secret_is_in_no_command_line_and_no_environment() -> None:
    launch = PiHarness({}).launch(CONTEXT)
    assert "polar-secret" not in " ".join((*launch.argv, *launch.env.values()))


def test_nothing_of_the_session_is_on_the_command_line() -> None:
    other = dataclasses.replace(CONTEXT, base_url="http://127.0.0.1:8399/s/two", secret="other")
    first, second = PiHarness({}).launch(CONTEXT), PiHarness({}).launch(other)
    assert (first.argv, first.env) == (second.argv, second.env)


@pytest.mark.parametrize(
    ("api", "suffix"),
    [("openai-responses", "/v1"), ("anthropic-messages", ""), ("google-generative-ai", "/v1beta")],
)
def test_other_dialects(api: str, suffix: str) -> None:
    (provider,) = json.loads(PiHarness({"api": api}).launch(CONTEXT).files[MODELS])["providers"].values()
    assert provider["baseUrl"] == CONTEXT.base_url + suffix


def test_settings_reach_the_command() -> None:
    settings = {"model": "other", "tools": ["bash", "read"], "args": ["--thinking", "off"], "env": {"A": "b"},
                "config": {"retry": {"enabled": False}}}  # fmt: skip
    launch = PiHarness(settings).launch(CONTEXT)
    line = " ".join(launch.argv)
    assert "--model other" in line
    assert "--tools bash,read --thinking off -- Fix it." in line
    assert launch.env["A"] == "b"
    assert json.loads(launch.files["/home/agent/.pi/agent/settings.json"]) == {"retry": {"enabled": False}}


def test_skills_are_shown_read_only(tmp_path: Path) -> None:
    harness = PiHarness({"skills": str(tmp_path)})
    assert harness.mounts()[-1] == Mount(tmp_path, "/opt/polar/skills")
    assert "--skill /opt/polar/skills -- Fix it." in " ".join(harness.launch(CONTEXT).argv)
    with pytest.raises(HarnessError, match=r"agent.settings.skills=.*no such directory"):
        PiHarness({"skills": str(tmp_path / "none")}).mounts()


@pytest.mark.parametrize("instruction", ["--help", "/model", "- a\n- b", "-", " spaces  \n", "ünï©ode"])
def test_an_instruction_is_one_argument_after_the_options(instruction: str) -> None:
    launch = PiHarness({}).launch(dataclasses.replace(CONTEXT, instruction=instruction))
    assert launch.argv[-2:] == ("--", instruction)


@pytest.mark.parametrize("instruction", ["@someone should fix this", "x" * 200_000, "ü" * 60_000])
def test_an_instruction_that_pi_would_misread_or_the_kernel_refuses_comes_by_stdin(instruction: str) -> None:
    launch = PiHarness({}).launch(dataclasses.replace(CONTEXT, instruction=instruction))
    assert launch.files["/home/agent/.pi/agent/instruction"].decode() == instruction
    assert all(len(word) < 1000 for word in launch.argv)
    assert launch.argv[0] == "sh"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modle": "x"}, "agent.settings.modle='x'.*known: model"),
        ({"output": "rpc"}, "agent.settings.output='rpc'"),
        ({"api": "x"}, "agent.settings.api"),
        ({"max_turns": 3}, "agent.settings.max_turns=3: Pi has no such limit"),
        ({"mcp_servers": [{"name": "box", "command": "c"}]}, "agent.settings.mcp_servers=box: Pi speaks no MCP"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        PiHarness(settings)


@pytest.mark.parametrize("reason", ["stop", "length", "toolUse"])
def test_a_normal_end(reason: str) -> None:
    assert PiHarness({}).status(ended(event("toolUse") + event(reason)), 2) == ("completed", "")


def test_an_error_is_read_from_the_output_because_the_exit_code_is_zero() -> None:
    status, why = PiHarness({}).status(ended(event("toolUse") + event("error", 'Said "no"\n503')), 1)
    assert status == "failed"
    assert 'Said "no"\n503' in why


def test_an_error_that_pi_recovered_from_is_none() -> None:
    assert PiHarness({}).status(ended(event("error", "once") + event("stop")), 2) == ("completed", "")


def test_what_the_policy_writes_is_not_taken_for_pi() -> None:
    text = json.dumps({"content": '{"stopReason":"error","errorMessage":"mine"}'}) + "\n"
    assert PiHarness({}).status(ended(event("stop") + text), 1) == ("completed", "")


@given(st.text())
def test_any_error_message_comes_through(message: str) -> None:
    status, why = PiHarness({}).status(ended(event("error", message)), 1)
    assert status == "failed"
    assert message[:300] in why


@pytest.mark.parametrize(
    ("exit_", "turns", "status", "why"),
    [
        (
            ended(event("error", "Refused.")),
            0,
            "failed",
            "never got an answer from the model (pi ended with «error»: R",
        ),
        (ended("", "boom", code=1), 3, "failed", "exit code 1: boom"),
        (ended("", "", code=0), 3, "failed", "exit code 0"),
        (ended(event("toolUse"), code=None, timed_out=True), 3, "timeout", "stopped after"),
        (ended(event("toolUse"), code=None, killed_for="output"), 3, "failed", "output"),
    ],
)
def test_other_ends(exit_: Exit, turns: int, status: str, why: str) -> None:
    found = PiHarness({}).status(exit_, turns)
    assert found[0] == status
    assert why in found[1]


def test_text_mode_fails_on_silence() -> None:
    harness = PiHarness({"output": "text"})
    assert harness.status(ended("done"), 1) == ("completed", "")
    assert harness.status(ended(""), 1)[0] == "failed"
