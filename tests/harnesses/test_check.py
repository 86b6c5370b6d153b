# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar harness list | install | check`, and what a trial says of a harness that does not work."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.cli.harness import app, chosen, options
from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.scripted import Served
from nemo_gym_polar.harnesses.base import HarnessError, ShellTool
from nemo_gym_polar.harnesses.registry import HARNESSES
from nemo_gym_polar.harnesses.shell import ShellHarness
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus
from nemo_gym_polar.rollouts.trial import Policy, Report, findings, try_harness
from tests.support.commands import run_command
from tests.support.rollouts import ASK_ONCE
from tests.support.sessions import make_trace


@pytest.fixture
def rendering(model_directory: Path) -> Rendering:
    return Rendering.load(model_directory, "qwen3.5", {"enable_thinking": False})


async def trial(rendering: Rendering, command: str) -> Report:
    settings = {"command": command}
    return await try_harness("shell", rendering, settings=settings, backend="bubblewrap", seconds=30.0)


def failed(report: Report) -> dict[str, str]:
    return {finding.name: finding.detail for finding in report.findings if not finding.ok}


async def test_a_program_that_is_missing_did_not_start(rendering: Rendering) -> None:
    report = await trial(rendering, "exec /nowhere/agent")
    assert not report.ok
    assert list(failed(report)) == ["started", "gateway", "turns", "tool", "tokens", "verdict"]
    assert "/nowhere/agent" in failed(report)["started"]


async def test_a_program_that_asks_nothing_did_not_reach_the_gateway(rendering: Rendering) -> None:
    report = await trial(rendering, "echo no key >&2; exit 3")
    assert list(failed(report)) == ["gateway", "turns", "tool", "tokens", "verdict"]
    assert "exit code 3: no key" in failed(report)["gateway"]


async def test_a_program_that_runs_no_tool_stops_at_the_turns(rendering: Rendering) -> None:
    report = await trial(rendering, ASK_ONCE)
    assert list(failed(report)) == ["turns", "tool"]
    assert failed(report)["turns"] == "1 of 4"
    assert failed(report)["tool"].startswith("polar-check.txt is not as it should be: cat: ")
    assert report.as_dict()["ok"] is False


def test_the_policy_calls_the_tool_three_times_and_ends() -> None:
    policy = Policy(ShellTool("run", "line", {"why": "x"}))
    prompt = "tools: run; an example: <tool_response>"
    said = [policy(prompt + "<tool_response>" * results) for results in range(4)]
    assert ["<function=run>" in text for text in said] == [True, True, True, False]
    assert "<parameter=line>\necho line 2 >> polar-check.txt\n</parameter>" in said[1]
    assert "<parameter=why>\nx\n</parameter>" in said[1]
    assert policy("a title, please") == "Done."


def result(**fields: object) -> SessionResult:
    metadata = {"harness": {"exit_code": 0}, "turns": 4, "evaluation": {}}
    made = {"session_id": "s", "task_id": "t", "sample": 0, "status": SessionStatus.COMPLETED, "reward": 1.0}
    return SessionResult.model_validate({**made, "metadata": metadata, **fields})


@pytest.mark.parametrize(("spoil", "ok"), [(0, True), (1, False)])
def test_one_token_that_was_not_sampled_is_found(spoil: int, ok: bool) -> None:
    trace = make_trace([(5, False), (3, True), (2, False), (2, True)])
    ids = trace.token_ids.copy()
    served = [Served(ids[:5], ids[5:8]), Served(ids[:10], ids[10:])]
    trace.token_ids[6] += spoil
    (tokens,) = (finding for finding in findings(result(traces=[trace]), served) if finding.name == "tokens")
    assert tokens.ok is ok
    assert tokens.detail == "1 main of 1 traces, 5 of 5 sampled tokens"


def test_tokens_in_two_chains_are_found() -> None:
    traces = [make_trace([(5, False), (3, True)]), make_trace([(5, False), (3, True)], index=1)]
    served = [Served(trace.token_ids[:5], trace.token_ids[5:]) for trace in traces]
    (tokens,) = (item for item in findings(result(traces=traces, dropped={"unseen": 2}), served) if not item.ok)
    assert tokens.detail == "2 main of 2 traces, 0 of 6 sampled tokens, dropped: {'unseen': 2}"
    assert np.asarray(traces[0].loss_mask).sum() == 3


def test_list(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "polar", "harness", "list", "--json", POLAR_CACHE_DIR=str(tmp_path / "cache"))
    rows = {row["name"]: row for row in json.loads(ended.stdout)}
    assert set(rows) == set(HARNESSES)
    assert rows["shell"]["installed"]
    assert rows["opencode"] == {
        "name": "opencode",
        "version": "1.18.33",
        "dialects": ["chat", "responses", "messages", "generate_content"],
        "installed": False,
    }
    assert all(row["version"] and row["dialects"] for name, row in rows.items() if name != "shell")
    plain = run_command(tmp_path, "polar", "harness", "list")
    assert len(plain.stdout.splitlines()) == len(HARNESSES)


def test_every_name_is_looked_at_first() -> None:
    assert list(chosen(["pi", "opencode", "pi"], every=False)) == ["pi", "opencode"]
    assert set(chosen(None, every=True)) == HARNESSES.keys() - {"shell"}
    with pytest.raises(HarnessError, match=r"agent\.harness='pie' is unknown"):
        chosen(["pi", "pie"], every=False)


@pytest.mark.parametrize(("names", "every"), [(None, False), ([], False), (["pi"], True)])
def test_either_names_or_all(names: list[str] | None, every: bool) -> None:
    with pytest.raises(UsageError, match=r"Name agent programs \(.*pi.*\), or give --all"):
        chosen(names, every)


@pytest.mark.parametrize(("text", "said"), [("{", "is not JSON"), ("[]", "is not a JSON object")])
def test_settings_must_be_an_object(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        options(text)


def test_an_install_that_fails_keeps_none_from_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Broken(ShellHarness):
        def installed(self) -> bool:
            return False

        def install(self) -> None:
            done.append(self.settings.command)
            if self.settings.command == "bad":
                raise HarnessError("no network")

    harnesses = {name: Broken({"command": name}) for name in ("bad", "good")}
    monkeypatch.setattr("nemo_gym_polar.cli.harness.chosen", lambda names, every: harnesses)
    ended = CliRunner().invoke(app, ["install", "--all"])
    assert (ended.exit_code, done) == (1, ["bad", "good"])
    assert "bad: no network" in ended.stderr
    assert "installed good in" in ended.stdout


def test_settings_that_an_agent_refuses_are_its_report(tmp_path: Path) -> None:
    ended = run_command(tmp_path, "polar", "harness", "check", "pi", "--json", "--settings", '{"max_turns": 3}')
    assert ended.returncode == 1
    (report,) = json.loads(ended.stdout)
    assert not report["ok"]
    assert "Pi has no such limit" in report["findings"][0]["detail"]
