# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real OpenCode in a real sandbox through the real gateway: what it delegates, sums up and gets wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.turn import Cause, Edge
from nemo_gym_polar.harnesses.opencode import OpencodeHarness
from tests.support.agents import MAKE, Agent, answers, check_one_chain, decoded, json_call
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import Stand, stand

OPENCODE = Agent("opencode")
shell = OPENCODE.shell
SUMMARY = "The agent was asked to make hello.txt; it has made the file, and nothing is left to do."


@pytest.fixture(scope="module", autouse=True)
def opencode() -> None:
    OpencodeHarness({}).install()


@pytest.fixture
async def bench(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    engine.script = answers(shell(MAKE))
    async with stand(engine, tmp_path) as made:
        yield made


async def test_a_sub_agent_is_a_chain_of_its_own(bench: Stand) -> None:
    arguments = {"description": "Make it", "prompt": "Please be a careful helper.", "subagent_type": "general"}

    def policy(context: str) -> str:
        if "\nPlease be a careful helper.<|im_end|>" in context:
            return answers(shell(MAKE))(context)
        return answers(tool_call("task", arguments))(context)

    bench.engine.script = policy
    solved = await OPENCODE.solve(bench)
    assert solved.edges == [Edge.ROOT, Edge.SUB_AGENT, Edge.CONTINUE, Edge.CONTINUE]
    assert solved.traces == [("main", (0, 3)), ("sub_agent", (1, 2))]
    assert solved.forest.turns[1].parent == 0
    assert not solved.session.dropped


async def test_a_summary_and_what_follows_it_are_compaction(engine: FakeEngine, tmp_path: Path) -> None:
    def policy(context: str) -> str:
        if "You are a context summarization agent" in context:
            return SUMMARY
        if SUMMARY in context:
            return answers(shell("echo after >> hello.txt"))(context)
        return shell(f"seq 1 1500; {MAKE}")

    engine.script = policy
    async with stand(engine, tmp_path, context_tokens=26_000) as bench:
        solved = await OPENCODE.solve(bench)
    assert [kind for kind, _ in solved.traces] == ["main", "compaction", "compaction"]
    assert [len(turns) for _, turns in solved.traces] == [2, 1, 2]
    assert not solved.session.dropped


async def test_a_call_that_can_not_be_read_is_renamed_and_still_one_chain(engine: FakeEngine, tmp_path: Path) -> None:
    broken = json_call("bash", '{"command": "echo')
    engine.script = answers(broken, json_call("bash", {"command": MAKE, "description": "Makes it"}))
    async with stand(engine, tmp_path, renderer="qwen3") as bench:
        solved = await OPENCODE.solve(bench)
        check_one_chain(bench, solved)
    assert solved.forest.turns[1].drift is Cause.ARGUMENTS_CHANGED
    assert "invalid" in decoded(bench, engine.served[1].context)
