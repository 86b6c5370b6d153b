# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code in a real sandbox through the real gateway: what it changes, asks again and delegates."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.turn import Edge, Status
from nemo_gym_polar.harnesses.claude_code import PACKAGE, ClaudeCodeHarness
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.agents import MAKE, RESULT, Agent, answers, check_one_chain, decoded, failing_once, json_call
from tests.support.fake_engine import FakeEngine, Fault
from tests.support.rollouts import Stand, stand

CONTEXT = 160_000  # the tests' tokenizer needs about two tokens where a real one needs one
FOUR = {"tools": ["Bash", "Edit", "Read", "Write"]}
BARE = Agent("claude_code", {"bare": True})
CLEAN = Agent("claude_code", FOUR)
WILD = {  # as it comes, under a model name that it does not know
    "model": "polar-policy",
    "prompt_caching": True,
    "tool_search": True,
    "background_tasks": True,
    "experimental_betas": True,
    "slash_commands": True,
    "env": {"CLAUDE_CODE_ATTRIBUTION_HEADER": "1"},
}
SUMMARY = "The numbers were listed at length; what is left to do is to make the file hello.txt that was asked for."


@pytest.fixture(scope="module", autouse=True)
def claude() -> None:
    ClaudeCodeHarness({}).install()


@pytest.fixture
async def bench(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    engine.script = answers(CLEAN.shell(MAKE))
    async with stand(engine, tmp_path, context_tokens=CONTEXT) as made:
        made.gateway.settings = made.gateway.settings.model_copy(update={"keep_alive": 0.3})
        yield made


async def test_files_change_and_tokens_are_kept_in_one_chain(bench: Stand) -> None:
    write = tool_call("Write", {"file_path": "/workspace/hello.txt", "content": "hello\n"})
    edit = tool_call("Edit", {"file_path": "/workspace/hello.txt", "old_string": "hello", "new_string": "hi"})
    bench.engine.script = answers("First I look.\n" + CLEAN.shell("ls -la"), write, edit, CLEAN.shell("cat hello.txt"))
    check_one_chain(bench, await CLEAN.solve(bench))


async def test_parallel_calls_are_one_chain(bench: Stand) -> None:
    bench.engine.script = answers("Both:\n" + CLEAN.shell(MAKE) + "\n" + CLEAN.shell("ls"))
    check_one_chain(bench, await CLEAN.solve(bench))


async def test_thinking_comes_back(engine: FakeEngine, tmp_path: Path) -> None:
    async with stand(engine, tmp_path, context_tokens=CONTEXT, thinking=True) as bench:
        thoughts = ("I look.", BARE.shell("ls")), ("I make it.", BARE.shell(MAKE)), ("It is made.", "Done.")
        engine.script = answers(*(f"{thought}\n</think>\n\n{spoken}" for thought, spoken in thoughts))
        solved = await BARE.solve(bench)
        check_one_chain(bench, solved)
        assert all(turn.drift is None for turn in solved.forest.turns)
        first = solved.forest.answer(solved.forest[0])
        assert first is not None and first.reasoning.strip() == "I look."


@pytest.mark.parametrize("settings", [{}, FOUR, {"bare": True}, WILD], ids=["default", "four tools", "bare", "wild"])
async def test_a_group_begins_with_one_prompt_that_tells_nothing_of_the_host(
    bench: Stand, tmp_path: Path, settings: dict[str, Any]
) -> None:
    group = await bench.service.run(Agent("claude_code", settings).task(num_samples=4))
    assert [session.reward for session in group.sessions] == [1.0] * 4
    assert group.first_prompt_mismatches == ()
    firsts = {prompt for one in bench.engine.served if RESULT not in (prompt := decoded(bench, one.context))}
    assert len(firsts) == 1
    for leak in (str(tmp_path), f"{Path.home()}/", str(PACKAGE.directory), "polar-harness", "x-anthropic-billing"):
        assert leak not in next(iter(firsts))


async def test_no_command_sees_the_key(bench: Stand) -> None:
    bench.engine.script = answers(BARE.shell("env | grep -c polar-; env | grep -c API_KEY; " + MAKE))
    solved = await BARE.solve(bench)
    assert f"{RESULT}\n0\n0\n" in decoded(bench, solved.forest.context(1).tolist())


async def test_moving_markers_system_messages_and_tool_search_leave_one_chain(bench: Stand) -> None:
    search = tool_call("ToolSearch", {"query": "select:NotebookEdit", "max_results": "3"})
    bench.engine.script = answers(search, CLEAN.shell("ls"), CLEAN.shell(MAKE))
    solved = await Agent("claude_code", WILD).solve(bench)
    check_one_chain(bench, solved)
    last = solved.forest.conversation(solved.forest.turns[-1])
    assert "NotebookEdit" not in {tool.name for tool in last.tools}
    assert '"name":"NotebookEdit"' in decoded(bench, bench.engine.served[-1].context)
    assert [message.role for message in last.messages].count("system") > 1


@pytest.mark.parametrize(("fault", "late"), [("500", True), ("500", False), ("nan", True), ("429", False)])
async def test_a_fault_in_the_middle_is_asked_again(bench: Stand, fault: Fault, late: bool) -> None:
    """Early it has a status, late the stream breaks after its headers: Claude Code asks again either way."""
    bench.engine.script = failing_once(bench, fault, late, BARE.shell("ls"), BARE.shell(MAKE))
    solved = await BARE.solve(bench)
    assert solved.edges == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
    assert [turn.status for turn in solved.forest.turns].count(Status.FAILED) == 1
    assert f"polar_broken_streams_total {1.0 if late else 0.0}" in bench.gateway.metrics.text().decode()


async def test_a_stream_that_is_silent_is_given_up_and_asked_again(bench: Stand) -> None:
    """The harness retries while nothing is wrong with the engine but its pace."""
    bench.gateway.settings = bench.gateway.settings.model_copy(update={"keep_alive": 60.0, "header_grace": 60.0})
    bench.engine.delay = 3600.0
    running = asyncio.create_task(BARE.solve(bench, settings={"env": {"API_TIMEOUT_MS": "6000"}}))
    async with asyncio.timeout(120):
        while not bench.engine.aborted:  # noqa: ASYNC110  # the engine is another's, and tells nobody
            await asyncio.sleep(0.05)
    bench.engine.delay = 0.0
    assert (await running).edges == [Edge.ROOT, Edge.CONTINUE]


async def test_keep_alives_come_before_the_message(bench: Stand) -> None:
    bench.engine.delay = 1.5
    check_one_chain(bench, await BARE.solve(bench))


@pytest.mark.parametrize("background", [False, True])
async def test_a_sub_agent_is_labelled(bench: Stand, background: bool) -> None:
    task = {"description": "look", "prompt": "List the files of this folder.", "subagent_type": "general-purpose"}

    def script(context: str) -> str:
        if "Create hello.txt" not in context:
            return answers(CLEAN.shell("ls"), "The folder has a README and nothing else in it.")(context)
        return answers(tool_call("Agent", task), CLEAN.shell(MAKE))(context)

    bench.engine.script = script
    agent = Agent("claude_code", {"tools": ["Agent", "Bash"], "background_tasks": background})
    solved = await agent.solve(bench)
    (begun,) = (turn for turn in solved.forest.turns if turn.edge is Edge.SUB_AGENT)
    assert begun.parent == 0
    assert solved.edges.count(Edge.ROOT) == 1
    assert {edge for edge in solved.edges if edge not in (Edge.ROOT, Edge.SUB_AGENT)} == {Edge.CONTINUE}
    assert sorted(kind for kind, _ in solved.traces) == ["main", "sub_agent"]


@pytest.mark.parametrize("marked", [False, True])
async def test_compaction_is_labelled(bench: Stand, marked: bool) -> None:
    summary = f"<analysis>Long.</analysis>\n<summary>\n{SUMMARY}\n</summary>" if marked else SUMMARY
    made: list[str] = []

    def script(context: str) -> str:
        if "CRITICAL: Respond with TEXT ONLY" in context.rpartition("<|im_start|>user")[2]:
            return summary
        made.append(CLEAN.shell(MAKE) if SUMMARY in context else CLEAN.shell("seq 1 1500"))
        return "Done." if SUMMARY in context and "hello.txt</parameter>" in squeezed(context) else made[-1]

    bench.engine.script = script
    solved = await CLEAN.solve(bench, settings={"compact_at": 30_000})
    assert Edge.COMPACTION in solved.edges
    begun = [turn for turn in solved.forest.turns if turn.edge is Edge.COMPACTION and turn.cause is None]
    summaries = [turn.index for turn in solved.forest.turns if said(solved, turn.index) == summary]
    assert begun[-1].parent in summaries
    assert solved.edges.count(Edge.ROOT) == 1
    assert {kind for kind, _ in solved.traces} == {"main", "compaction"}


def squeezed(context: str) -> str:
    return re.sub(r"\s+", "", context)


def said(solved: Any, turn: int) -> str:
    answer = solved.forest.answer(solved.forest[turn])
    return answer.text if answer else ""


async def test_arguments_that_are_no_json_are_told_and_stay_what_was_sampled(
    engine: FakeEngine, tmp_path: Path
) -> None:
    async with stand(engine, tmp_path, context_tokens=CONTEXT, renderer="qwen3") as bench:
        good = json_call("Bash", {"command": MAKE, "description": "Make it"})
        engine.script = answers(json_call("Bash", '{"command": "ls'), json_call("Bash", "ls"), good)
        solved = await BARE.solve(bench)
        check_one_chain(bench, solved)
        assert all(turn.drift is None for turn in solved.forest.turns)


async def test_wrong_calls_are_told_and_broken_ones_are_seen(bench: Stand) -> None:
    wrong = tool_call("Bash", {"comand": "ls"})
    broken = "Look:\n" + BARE.shell("ls").removesuffix("</tool_call>")
    bench.engine.script = answers(wrong, tool_call("no_such_tool", {"x": "1"}), BARE.shell(MAKE), broken)
    check_one_chain(bench, await BARE.solve(bench))


@pytest.mark.parametrize("instruction", ["@README says it.", "/fix it", "--help", "Long. " * 3000])
async def test_instructions_of_any_shape(bench: Stand, instruction: str) -> None:
    solved = await BARE.solve(bench, instruction=instruction)
    assert instruction.strip() in decoded(bench, solved.forest.context(0).tolist())


async def test_skills_and_mcp_servers_are_offered(bench: Stand, tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greet\ndescription: How to greet in a file, step by step.\n---\nWrite hi.\n")
    server = {"name": "none", "command": "/bin/false"}
    settings = {"skills": str(skill.parents[1]), "mcp_servers": [server], "tools": ["Bash", "Skill"]}
    bench.engine.script = answers(tool_call("Skill", {"skill": "greet"}), CLEAN.shell(MAKE))
    solved = await Agent("claude_code", settings).solve(bench)
    assert "How to greet in a file, step by step." in decoded(bench, solved.forest.context(0).tolist())
    assert "Write hi." in decoded(bench, solved.forest.context(1).tolist())


async def test_a_run_beyond_its_turns_is_stopped_and_scored(bench: Stand) -> None:
    bench.engine.script = lambda _: BARE.shell(MAKE)
    (session,) = (await bench.service.run(BARE.task(settings={"max_turns": 2}))).sessions
    assert (session.status, session.reward, session.metadata["turns"]) == (SessionStatus.TIMEOUT, 1.0, 2)


async def test_a_failed_run_is_told(bench: Stand) -> None:
    bench.engine.faults.extend(["400"] * 20)
    (session,) = (await bench.service.run(BARE.task())).sessions
    assert session.status is SessionStatus.ERROR
    assert "never got an answer from the model (claude failed: API Error: 400" in str(session.error)
    assert session.traces == []


async def test_an_instruction_beyond_the_context_is_a_clear_failure(bench: Stand) -> None:
    (session,) = (await bench.service.run(BARE.task(instruction="Long. " * 100_000))).sessions
    assert session.status is SessionStatus.ERROR
    assert "rompt is too long" in str(session.error)
