# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar traces` shows what the journal holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemo_gym_polar.cli.errors import CommandError
from nemo_gym_polar.cli.traces import describe, find, show
from tests.support.commands import run_command
from tests.support.journals import record_session


async def test_describes_turns_and_traces(tmp_path: Path) -> None:
    described = describe(await record_session(tmp_path, "s1", turns=3), "prefix_merging")
    assert described["session"] == "s1"
    assert described["ended"] == {"status": "COMPLETED"}
    assert described["damage"] is None
    assert [turn["edge"] for turn in described["turns"]] == ["root", "continue", "continue"]
    assert [turn["context"] for turn in described["turns"]] == [10, 23, 36]
    assert [turn["new"] for turn in described["turns"]] == [10, 10, 10]
    (trace,) = described["traces"]
    assert (trace["tokens"], trace["trained"], trace["versions"]) == (39, 9, ["0", "1", "2"])
    assert described["trained_tokens"] == 9


async def test_the_builder_can_be_chosen(tmp_path: Path) -> None:
    described = describe(await record_session(tmp_path, "s1", turns=3), "per_request")
    assert [trace["tokens"] for trace in described["traces"]] == [13, 26, 39]
    assert described["trained_tokens"] == 9


async def test_a_torn_tail_is_named(tmp_path: Path) -> None:
    path = await record_session(tmp_path, "s1", turns=2)
    path.write_bytes(path.read_bytes()[:-5])
    described = describe(path, "prefix_merging")
    assert "unfinished record" in described["damage"]
    assert len(described["turns"]) == 2


async def test_what_a_journal_is_before_its_first_record_is_named(tmp_path: Path) -> None:
    path = await record_session(tmp_path, "s1", turns=1)
    for whole in (0, 20):
        path.write_bytes(path.read_bytes()[:whole])
        assert "holds no session" in describe(path, "prefix_merging")["damage"]


async def test_brackets_in_names_are_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "[red]runs"
    show(str(await record_session(place, "s1", turns=1)))
    assert "[red]runs/s1.journal" in capsys.readouterr().out.replace("\n", "")
    await record_session(place, "[red]s2", turns=1)
    show(str(place))
    assert "[red]s2" in capsys.readouterr().out


async def test_a_directory_is_no_journal(tmp_path: Path) -> None:
    path = await record_session(tmp_path, "s1", turns=1)
    (tmp_path / "s0.journal").mkdir()
    assert find(str(tmp_path), tmp_path) == [path]


async def test_finds_by_id_path_and_directory(tmp_path: Path) -> None:
    first = await record_session(tmp_path / "runs/a/sessions", "s1", turns=1)
    second = await record_session(tmp_path / "runs/a/sessions", "s2", turns=1)
    assert find("s2", tmp_path / "runs") == [second]
    assert find(str(first), tmp_path / "elsewhere") == [first]
    assert find(str(tmp_path / "runs"), tmp_path / "elsewhere") == [first, second]
    with pytest.raises(CommandError, match="no journal of 's3' under"):
        find("s3", tmp_path / "runs")


async def test_unknown_builder_is_one_line(tmp_path: Path) -> None:
    path = await record_session(tmp_path, "s1", turns=1)
    with pytest.raises(CommandError, match=r"s1\.journal: no builder 'prefix'; choose one of"):
        describe(path, "prefix")


async def test_command_prints_tables_and_json(tmp_path: Path) -> None:
    await record_session(tmp_path / "runs/a", "s1", turns=2)
    await record_session(tmp_path / "runs/a", "s2", turns=1)
    table = run_command(tmp_path, "polar", "traces", "s1")
    assert table.returncode == 0, table.stderr
    assert "continue" in table.stdout
    assert "trained tokens: 6; not trained on: none" in table.stdout
    several = run_command(tmp_path, "polar", "traces", "runs")
    assert [line.split()[:4] for line in several.stdout.splitlines() if line.startswith("s") and line[1].isdigit()] == [
        ["s1", "2", "1", "6"],
        ["s2", "1", "1", "3"],
    ]
    as_json = json.loads(run_command(tmp_path, "polar", "traces", "s1", "--json").stdout)
    assert as_json["trained_tokens"] == 6


async def test_something_else_than_a_journal_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of the kind")
    ended = run_command(tmp_path, "polar", "traces", "notes.txt")
    assert ended.returncode == 1
    assert ended.stderr.startswith("polar: error: notes.txt")
    assert ended.stderr.count("\n") == 1
