# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar audit` finds what is wrong between a journal and the traces of its run, and says it in one line each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from nemo_gym_polar.cli.audit_report import Report, examine
from nemo_gym_polar.export.jsonl import write_traces as write_step
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.findings import Breach
from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.gateway.management import write_traces
from nemo_gym_polar.rollouts.results import write_result
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus
from tests.support.commands import run_command
from tests.support.journals import record_session

BUILT = "built by prefix_merging"


async def recorded(run: Path, session: str = "s1", turns: int = 3) -> Path:
    return await record_session(run / "journals", session, turns)


def checked(journal: Path) -> Report:
    return examine(journal, "prefix_merging")[0]


def breaches(journal: Path) -> list[tuple[str, Breach]]:
    return [(source, finding.breach) for source, finding in checked(journal).breaches]


async def test_a_sound_session_is_sound_with_every_kind_of_trace_file(tmp_path: Path) -> None:
    journal = await recorded(tmp_path)
    forest = read_journal(journal)
    write_traces(forest, tmp_path / "traces")
    write_step(tmp_path / "traces/step-1.jsonl", build(forest).traces)
    write_step(tmp_path / "traces/step-2.jsonl", build(read_journal(await recorded(tmp_path, "s11"))).traces)
    report = checked(journal)
    assert (report.sound, report.error, report.note, report.trained) == (True, None, None, 9)
    assert report.checked == {BUILT: 1, "s1.jsonl": 1, "step-1.jsonl": 1}
    result = SessionResult(
        session_id="s1", task_id="t", sample=0, status=SessionStatus.COMPLETED, reward=1.0, traces=build(forest).traces
    )
    write_result(tmp_path, result)
    assert checked(journal).sound
    write_result(tmp_path, result.model_copy(update={"dropped": {"masked": 3}}))
    assert breaches(journal) == [("s1.jsonl", Breach.ACCOUNT)]


Row = dict[str, Any]


def _token(row: Row) -> None:
    row["token_ids"][11] += 1


def _mask(row: Row) -> None:
    row["loss_mask"][10] = False


def _logprob(row: Row) -> None:
    row["logprobs"][10] = -9.0


@pytest.mark.parametrize(
    ("change", "breach"), [(_token, Breach.CONTEXT), (_mask, Breach.MASK), (_logprob, Breach.LOGPROB)]
)
async def test_a_changed_trace_file_is_found(tmp_path: Path, change: Callable[[Row], None], breach: Breach) -> None:
    """The digest in the row tells that it was changed, the journal tells what it should be."""
    journal = await recorded(tmp_path)
    write_traces(read_journal(journal), tmp_path / "traces")
    path = tmp_path / "traces/s1.jsonl"
    row = orjson.loads(path.read_bytes())
    change(row)
    path.write_bytes(orjson.dumps(row) + b"\n")
    assert {("s1.jsonl", Breach.DIGEST), ("s1.jsonl", breach)} <= set(breaches(journal))


async def test_a_trace_file_of_another_run_is_found(tmp_path: Path) -> None:
    journal = await recorded(tmp_path)
    other = read_journal(await recorded(tmp_path / "other", "s1", turns=2))
    write_traces(other, tmp_path / "traces")
    assert breaches(journal) == [("s1.jsonl", Breach.ACCOUNT)]  # a sound beginning, but the third turn is missing
    path = tmp_path / "traces/s1.jsonl"
    row = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**row, "turns": [0, 5]}) + b"\n" + orjson.dumps({**row, "index": 1}) + b"\n")
    assert ("s1.jsonl", Breach.CONTEXT) in breaches(journal)
    assert ("s1.jsonl", Breach.OWNER) in breaches(journal)


async def test_journals_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    journal = await recorded(tmp_path)
    whole = journal.read_bytes()
    for data, said in (
        (whole[:60] + b"x" + whole[61:], "is corrupt: a damaged"),
        (whole[:5], "is half-written: it ends before its first record"),
        (b"", "is half-written: it ends before its first record"),
        (b"something else", "is not a journal"),
    ):
        journal.write_bytes(data)
        report = checked(journal)
        assert not report.sound
        assert said in (report.error or "")
        assert str(journal) in (report.error or "")
    ended = run_command(tmp_path, "polar", "audit", str(journal))
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith(f"polar: error: {journal} is not a journal")
    missing = run_command(tmp_path, "polar", "audit", "nobody")
    assert missing.returncode == 1
    assert missing.stderr.startswith("polar: error: no journal of 'nobody' under runs")


async def test_what_is_whole_of_a_half_written_journal_is_audited(tmp_path: Path) -> None:
    journal = await recorded(tmp_path)
    whole = journal.read_bytes()
    for cut in (1, 8, len(whole) // 3):
        journal.write_bytes(whole[:-cut])
        report = checked(journal)
        assert report.sound
        assert "half-written" in (report.note or "")


async def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    journal = await recorded(tmp_path / "runs/a")
    table = run_command(tmp_path, "polar", "audit", "s1")
    assert (table.returncode, table.stderr) == (0, "")
    assert "sound: 9 tokens to train on, each owned once" in table.stdout
    write_traces(read_journal(journal), tmp_path / "runs/a/traces")
    path = tmp_path / "runs/a/traces/s1.jsonl"
    path.write_bytes(path.read_bytes().replace(b"-0.25", b"-0.75"))
    found = run_command(tmp_path, "polar", "audit", "s1", "--json")
    report = json.loads(found.stdout)
    assert (found.returncode, report["sound"], report["logprobs"]) == (1, False, None)
    assert [breach["breach"] for breach in report["breaches"]] == ["digest", "logprob"]
    assert "trace 0 has other logprobs than recorded (s1.jsonl)" in run_command(tmp_path, "polar", "audit", "s1").stdout


async def test_one_bad_journal_does_not_hide_the_others(tmp_path: Path) -> None:
    await recorded(tmp_path / "runs/a", "s1")
    bad = await recorded(tmp_path / "runs/a", "s2")
    bad.write_bytes(b"nothing of the kind")
    ended = run_command(tmp_path, "polar", "audit", "runs", "--json")
    assert ended.returncode == 1
    assert [(one["session"], one["sound"]) for one in json.loads(ended.stdout)] == [("s1", True), ("s2", False)]
    table = run_command(tmp_path, "polar", "audit", "runs").stdout
    assert "is not a journal" in table
    assert table.splitlines()[-1] == "1 of 2 sessions sound: 9 tokens to train on, each owned once"


async def test_a_tolerance_without_an_engine_is_refused(tmp_path: Path) -> None:
    await recorded(tmp_path / "runs/a")
    ended = run_command(tmp_path, "polar", "audit", "s1", "--tolerance", "0.1")
    assert ended.returncode == 2
    assert "give --engine URL" in ended.stderr
