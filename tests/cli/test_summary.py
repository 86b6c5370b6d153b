# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`polar traces --summary`: tokens and forks of a run, by cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemo_gym_polar.cli.errors import CommandError
from nemo_gym_polar.cli.summary import summarise
from tests.support.commands import run_command
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import bench, chat, user


async def record(engine: FakeEngine, journals: Path) -> None:
    """A session that goes on and forks; one whose turns run out; a file that is no journal; a torn one."""
    async with bench(engine, journals, when_exhausted="answer") as stand:
        session = await stand.gateway.open("forking")
        system = {"role": "system", "content": "Be brief."}
        first = await stand.post(session, chat(system, user("hi")))
        second = await stand.post(session, chat(system, user("hi"), first.message, user("ho")))
        history = [user("hi"), first.message, user("ho"), second.message, user("hu")]
        await stand.post(session, chat({"role": "system", "content": "Be long."}, *history))
        await stand.gateway.finish(session.id)
        spent = await stand.gateway.open("spent", max_turns=1)
        first = await stand.post(spent, chat(user("hi")))
        await stand.post(spent, chat(user("hi"), first.message, user("ho")))
        await stand.gateway.finish(spent.id)
        torn = await stand.gateway.open("torn")
        await stand.post(torn, chat(user("hi")))
    path = journals / "torn.journal"
    path.write_bytes(path.read_bytes()[:-30])
    (journals / "notes.journal").write_text("nothing of the kind")


async def test_all_sessions_together(engine: FakeEngine, tmp_path: Path) -> None:
    await record(engine, tmp_path / "j")
    plain = summarise(sorted((tmp_path / "j").iterdir()), "prefix_merging").plain()
    served = engine.served
    assert (plain["sessions"], plain["unreadable_journals"], plain["unfinished_sessions"]) == (3, 1, 1)
    assert plain["exhausted_sessions_by_budget"] == {"turns": 1}
    assert plain["turns_by_edge"] == {"root": 4, "continue": 2}
    assert plain["forks_by_cause"] == {"system_changed": 1}
    assert plain["reread_tokens_by_cause"]["system_changed"] <= len(served[2].context)
    assert plain["sampled_tokens"] == sum(len(one.sampled) for one in served)
    assert plain["context_tokens"] == sum(len(one.context) for one in served)
    assert plain["trained_tokens"] + sum(plain["dropped_tokens_by_cause"].values()) == plain["sampled_tokens"]


async def test_the_command(engine: FakeEngine, tmp_path: Path) -> None:
    await record(engine, tmp_path / "run/journals")
    shown = run_command(tmp_path, "polar", "traces", "run", "--summary")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "forks by cause: 1 system_changed" in lines
    assert "drifts by cause: none" in lines
    assert "damaged sessions: 0" in lines
    (row,) = [line for line in lines if line.startswith("system_changed")]
    assert row.split()[1] == "1" and row.rstrip().endswith("%")
    as_json = json.loads(run_command(tmp_path, "polar", "traces", "run", "--summary", "--json").stdout)
    assert as_json["sessions"] == 3


async def test_an_unknown_builder_is_one_line(engine: FakeEngine, tmp_path: Path) -> None:
    await record(engine, tmp_path / "j")
    with pytest.raises(CommandError, match="no builder 'prefix'; choose one of"):
        summarise([tmp_path / "j" / "spent.journal"], "prefix")
