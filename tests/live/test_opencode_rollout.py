# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real OpenCode in a real sandbox through the real gateway: what it changes, asks again, delegates and sums up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.turn import Cause, Edge, Status
from nemo_gym_polar.harnesses.opencode import PACKAGE, OpencodeHarness
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.agents import MAKE, RESULT, Agent, answers, check_one_chain, decoded, failing_once, json_call
from tests.support.fake_engine import FakeEngine, Fault
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


@pytest.mark.parametrize("api", ["openai-compatible", "openai", "anthropic", "google"])
async def test_files_change_and_tokens_are_kept_in_one_chain(bench: Stand, api: str) -> None:
    bench.engine.script = answers("I look.\n" + shell("ls -la"), shell(MAKE), shell("echo hi >> hello.txt"))
    solved = await OPENCODE.solve(bench, "test $(grep -cx hi hello.txt) = 2", settings={"api": api})
    assert len(solved.edges) == 4
    check_one_chain(bench, solved)


async def test_a_group_begins_with_one_prompt_that_tells_nothing_of_the_host(bench: Stand, tmp_path: Path) -> None:
    group = await bench.service.run(OPENCODE.task(num_samples=4))
    assert [session.reward for session in group.sessions] == [1.0] * 4
    assert group.first_prompt_mismatches == ()
    prompts = [decoded(bench, served.context) for served in bench.engine.served]
    (first,) = {prompt for prompt in prompts if RESULT not in prompt}
    assert "\nCreate hello.txt in the current directory.<|im_end|>" in first
    for leak in (str(tmp_path), str(PACKAGE.directory), "polar-check", bench.server.url):
        assert leak not in first


@pytest.mark.parametrize(("fault", "late"), [("429", False), ("500", True)])
async def test_it_asks_again_after_a_fault(bench: Stand, fault: Fault, late: bool) -> None:
    """Early it has a status, late the stream is reset after its headers."""
    bench.engine.script = failing_once(bench, fault, late, shell(MAKE))
    solved = await OPENCODE.solve(bench)
    assert [turn.status for turn in solved.forest.turns] == [Status.KEPT, Status.FAILED, Status.KEPT]
    assert f"polar_broken_streams_total {float(late)}" in bench.gateway.metrics.text().decode()
    check_one_chain(bench, solved)


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


async def test_an_unknown_tool_is_one_chain_too(bench: Stand) -> None:
    bench.engine.script = answers(tool_call("launch", {"target": "moon"}), shell(MAKE))
    check_one_chain(bench, await OPENCODE.solve(bench))


async def test_a_failing_engine_is_a_failed_run_with_its_reason(bench: Stand) -> None:
    bench.engine.faults.extend(["400"] * 20)
    (session,) = (await bench.service.run(OPENCODE.task("true"))).sessions
    assert session.status is SessionStatus.ERROR
    assert "opencode ended with an error" in str(session.error)
