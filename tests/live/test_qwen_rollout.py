# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Qwen Code in a real sandbox through the real gateway: what it delegates, sums up and gets wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.turn import Cause, Edge
from nemo_gym_polar.harnesses.qwen_code import QwenCodeHarness
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.agents import MAKE, Agent, answers, json_call
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import Stand, stand

QWEN = Agent("qwen_code")
shell = QWEN.shell
CONTEXT = 200_000  # tokens; with this tokenizer its own prompt has 37,000
SUMMARY = "The agent was asked to make hello.txt; it has made the file, and nothing is left to do."


@pytest.fixture(scope="module", autouse=True)
def qwen() -> None:
    QwenCodeHarness({}).install()


@pytest.fixture
async def bench(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    engine.script = answers(shell(MAKE))
    async with stand(engine, tmp_path, context_tokens=CONTEXT) as made:
        yield made


async def test_an_answer_without_words_is_asked_again_and_counted(bench: Stand) -> None:
    said = iter(["", shell(MAKE), "Done."])
    bench.engine.script = lambda _: next(said)
    solved = await QWEN.solve(bench)
    assert solved.edges == [Edge.ROOT, Edge.RETRY, Edge.CONTINUE]
    assert solved.traces == [("main", (1, 2))]
    assert solved.session.dropped == {"unseen": 1}


async def test_a_sub_agent_is_a_chain_of_its_own(bench: Stand) -> None:
    prompt = "Please be a careful helper."
    arguments = {"description": "Make it", "prompt": prompt, "subagent_type": "general-purpose"}

    def policy(context: str) -> str:
        if "Create hello.txt" not in context:
            return answers(shell(MAKE))(context)
        return answers(tool_call("agent", {**arguments, "run_in_background": "false"}))(context)

    bench.engine.script = policy
    solved = await QWEN.solve(bench)
    assert solved.edges == [Edge.ROOT, Edge.SUB_AGENT, Edge.CONTINUE, Edge.CONTINUE]
    assert solved.traces == [("main", (0, 3)), ("sub_agent", (1, 2))]
    assert solved.forest.turns[1].parent == 0
    assert not solved.session.dropped


async def test_a_summary_and_what_follows_it_are_compaction(engine: FakeEngine, tmp_path: Path) -> None:
    def policy(context: str) -> str:
        if "You are the component that summarizes" in context:
            notes = "<analysis>First it looked around, then it made the file.</analysis>"
            return f"{notes}\n<state_snapshot>{SUMMARY}</state_snapshot>"
        if SUMMARY in context and "echo after" in context:
            return "Done."
        return shell("echo after >> hello.txt" if SUMMARY in context else f"seq 1 1500; {MAKE}")

    engine.script = policy
    async with stand(engine, tmp_path, context_tokens=60_000) as bench:
        solved = await QWEN.solve(bench)
    kinds = [kind for kind, _ in solved.traces]
    assert kinds[0] == "main"
    assert kinds[1:] == ["compaction"] * len(kinds[1:])  # it may sum up a second time before its last word
    assert Edge.SIDE_CALL not in solved.edges
    assert Edge.COMPACTION in solved.edges
    assert not solved.session.dropped


async def test_arguments_that_it_repairs_are_one_chain(engine: FakeEngine, tmp_path: Path) -> None:
    broken = json_call("run_shell_command", f'{{"command": "{MAKE}", "is_background": false')
    engine.script = answers(broken)
    async with stand(engine, tmp_path, renderer="qwen3", context_tokens=CONTEXT) as bench:
        solved = await QWEN.solve(bench)
    (trace,) = solved.session.traces
    last = engine.served[-1]
    assert trace.token_ids.tolist() == last.context + last.sampled
    assert solved.forest.turns[-1].drift is Cause.ARGUMENTS_CHANGED


async def test_its_own_limit_of_turns_is_a_time_out_that_is_scored(bench: Stand) -> None:
    bench.engine.script = answers(shell("ls"), shell(MAKE), shell("ls"))
    (session,) = (await bench.service.run(QWEN.task(settings={"max_turns": 2}))).sessions
    assert (session.status, session.reward) == (SessionStatus.TIMEOUT, 1.0)
    assert "max session turns" in str(session.error)
    assert [trace.trained_tokens > 0 for trace in session.traces] == [True]
