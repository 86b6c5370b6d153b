# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar export`, `polar replay` and `polar diff` over journals on disk."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nemo_gym_polar.chat import Image, Message
from nemo_gym_polar.cli.errors import CommandError, UsageError
from nemo_gym_polar.cli.polar import app
from nemo_gym_polar.export.envelope import decode_envelope
from nemo_gym_polar.export.jsonl import read_traces
from nemo_gym_polar.export.parquet import read_parquet
from nemo_gym_polar.export.prefix_tree import decode_tree
from nemo_gym_polar.forest.trace import Trace
from tests.forest.world import World, assistant, user
from tests.support.commands import run_command
from tests.support.journals import record_session, write_outcome
from tests.support.traces import equal

MY_BUILDER = """
from nemo_gym_polar.forest.builders import Build, build

def first_only(store, options):
    made = build(store, "per_request")
    kept = made.traces[:1]
    made.dropped["first_only"] += sum(trace.trained_tokens for trace in made.traces[1:])
    return Build(kept, made.dropped)

def nothing(store, options):
    return None
"""


@pytest.fixture
async def run(tmp_path: Path) -> Path:
    """A run with two samples of a task, one good and one poor, and a session that nobody scored."""
    for name, turns in (("good", 3), ("poor", 2), ("unscored", 1)):
        await record_session(tmp_path / "run/journals", name, turns)
    write_outcome(tmp_path / "run", "good")
    write_outcome(tmp_path / "run", "poor", sample=1, reward=0.25, status="TIMEOUT")
    return tmp_path / "run"


def polar(*arguments: object) -> str:
    """What the command prints; its error is raised."""
    ended = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def same(one: list[Trace], other: list[Trace]) -> bool:
    key = lambda trace: (trace.session_id, trace.index)  # noqa: E731
    return len(one) == len(other) and all(map(equal, sorted(one, key=key), sorted(other, key=key)))


def test_every_format_holds_the_same_traces(run: Path) -> None:
    for form in ("jsonl", "parquet", "envelope", "tree"):
        polar("export", run, "--format", form)
    traces = list(read_traces(run / "exports/traces.jsonl"))
    assert [(trace.session_id, trace.reward, trace.group) for trace in traces] == [
        ("good", 1.0, "t"),
        ("poor", 0.25, "t"),
        ("unscored", None, None),
    ]
    assert same(list(read_parquet(run / "exports/traces.parquet")), traces)
    envelopes = lines(run / "exports/envelope.jsonl")
    assert same([trace for row in envelopes for trace in decode_envelope(row)], traces)
    trees = lines(run / "exports/tree.jsonl")
    assert [tree["group"] for tree in trees] == ["t", "unscored"]
    assert same([trace for row in trees for trace in decode_tree(row)], traces)
    assert (trees[0]["tokens"], trees[0]["unique_tokens"]) == (65, 39)


def test_fine_tuning_takes_what_was_accepted(run: Path) -> None:
    said = polar("export", run, "--format", "sft")
    assert said.strip().endswith("left out: 1 status TIMEOUT, 1 status unknown")
    (row,) = lines(run / "exports/sft.jsonl")
    assert (row["session_id"], row["reward"], len(row["messages"])) == ("good", 1.0, 6)
    polar("export", run, "--format", "sft", "--everything", "-o", run / "all.jsonl")
    assert [row["session_id"] for row in lines(run / "all.jsonl")] == ["good", "poor", "unscored"]


def test_conversations_that_are_not_text_are_counted(tmp_path: Path) -> None:
    world = World()
    world.ask([Message("user", (Image("data:image/png;base64,AA=="),))], assistant("A cat."))
    world.ask([user("Another talk.")], assistant("Yes."))
    (tmp_path / "s.journal").write_bytes(world.journal())
    said = polar("export", tmp_path, "--format", "sft", "--everything", "--kind", "main", "--kind", "side_call")
    assert said.startswith("1 conversations of 1 sessions")
    assert said.strip().endswith("left out: 1 conversation with images")


def test_tokens_are_accounted_for(run: Path) -> None:
    said = polar("export", run, "--option", "max_tokens=30", "-o", run / "cut.jsonl")
    assert said.strip().endswith("tokens trained on: 15, dropped: 3 max_tokens")


def test_sessions_are_chosen_by_status_reward_and_task(run: Path) -> None:
    def chosen(option: str, value: str) -> list[str]:
        printed = polar("export", run, option, value, "-o", "-")
        return [json.loads(line)["session_id"] for line in printed.splitlines()]

    assert chosen("--status", "timeout") == ["poor"]
    assert chosen("--min-reward", "0.5") == ["good"]
    assert chosen("--task", "t") == ["good", "poor"]


def test_keys_of_an_envelope_can_be_renamed(run: Path) -> None:
    printed = polar("export", run, "--format", "envelope", "--key", "token_ids=input_ids", "-o", "-")
    (trace,) = json.loads(printed.splitlines()[0])["training_traces"]
    assert "input_ids" in trace
    assert "token_ids" not in trace


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--min-reward", "2"], r"nothing to export \(1 no reward, 2 reward below 2\)", id="nothing"),
        pytest.param(["--format", "parquet", "-o", "-"], "can't go to stdout", id="parquet to stdout"),
        pytest.param(["--kind", "main"], "--kind is for --format sft", id="kind"),
        pytest.param(["--everything"], "--everything is for --format sft", id="everything"),
        pytest.param(["--key", "token_ids=x"], "--key is for --format envelope", id="key"),
        pytest.param(["--format", "envelope", "--key", "token_ids"], "has no new name", id="name"),
        pytest.param(["--format", "envelope", "--key", "ids=x"], "has no key 'ids'", id="unknown key"),
        pytest.param(["--builder", "mine"], "no builder 'mine'", id="builder"),
        pytest.param(["--option", "max_tokens"], "has no value", id="option"),
        pytest.param(["--option", "max_tokens=many"], "max_tokens is 'many'", id="value"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(run: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        polar("export", run, *arguments)
    assert not (run / "exports").exists() or not list((run / "exports").iterdir())


def test_without_pyarrow_the_remedy_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "nemo_gym_polar.export.parquet", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CommandError, match=r"pip install 'nemo-gym-polar\[parquet\]'"):
        polar("export", run, "--format", "parquet")


def test_damage_stops_an_export_unless_it_is_salvaged(run: Path) -> None:
    journal = run / "journals/good.journal"
    data = bytearray(journal.read_bytes())
    data[-150] ^= 0xFF
    journal.write_bytes(data)
    with pytest.raises(CommandError, match=r"good\.journal.*--salvage takes the turns before"):
        polar("export", run)
    assert "3 traces" in polar("export", run, "--salvage")


def test_replay_runs_any_builder(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (run / "mine.py").write_text(MY_BUILDER)
    monkeypatch.chdir(run)
    found = json.loads(polar("replay", run, "--builder", "mine:first_only", "--json"))
    assert [len(session["traces"]) for session in found["sessions"]] == [1, 1, 1]
    assert found["total"] == {
        "sessions": 3,
        "traces": 3,
        "tokens": 39,
        "sampled_tokens": 18,
        "trained_tokens": 9,
        "dropped_tokens_by_cause": {"first_only": 9},
    }
    with pytest.raises(CommandError, match="'mine:nothing' gave a NoneType; it must return a Build"):
        polar("replay", run, "--builder", "mine:nothing")


def test_replay_says_what_a_setting_costs(run: Path) -> None:
    said = polar("replay", run / "journals/good.journal", "--option", "max_tokens=30")
    assert "of 9 sampled tokens 6 trained on; dropped: 3 max_tokens" in said


async def test_a_table_that_is_piped_is_not_cut_off(tmp_path: Path) -> None:
    names = ["a" * 60, "b" * 60]
    for name in names:
        await record_session(tmp_path, name, turns=2)
    said = polar("replay", tmp_path, "--option", "max_tokens=20").splitlines()
    assert [line.split() for line in said if line.startswith(("aaa", "bbb"))] == [
        [name, "-", "-", "2", "1", "3", "3", "max_tokens"] for name in names
    ]


def test_diff_names_traces_and_owners(tmp_path: Path) -> None:
    world = World()
    begin = [user("begin")]
    world.ask(begin, assistant("yes"))
    world.ask([*begin, assistant("yes"), user("go on")], assistant("done"))
    (tmp_path / "s.journal").write_bytes(world.journal())
    assert "0 of 1 sessions differ" in polar("diff", tmp_path)
    told = polar("diff", tmp_path, "--to", "per_request")
    assert "no trace → trace 0 (to turn 0)" in told
    assert "turn 0: 3 trained on in trace 0 (to turn 1) → 3 trained on in trace 0 (to turn 0)" in told
    found = json.loads(polar("diff", tmp_path, "--to", "per_request", "--json"))
    assert (found["same"], found["right"]["builder"]) == (False, "per_request")
    (session,) = found["sessions"]
    assert (session["left"]["traces"], session["right"]["traces"]) == (1, 2)
    assert [change["turn"] for change in session["owners"]] == [0]


def test_an_error_is_one_line(run: Path) -> None:
    ended = run_command(run, "polar", "export", "nowhere")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith("polar: error: no journal of 'nowhere'")


def test_a_wrong_command_line_is_another_error(run: Path) -> None:
    with pytest.raises(UsageError):
        polar("diff", run, "--to-option", "max_tokens=0")
