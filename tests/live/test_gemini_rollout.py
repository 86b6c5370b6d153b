# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Gemini CLI in a real sandbox through the real gateway: what it changes, asks again, delegates."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Cause, Edge, Status
from nemo_gym_polar.harnesses.gemini_cli import PACKAGE, GeminiCliHarness
from nemo_gym_polar.rollouts.results import SessionResult
from nemo_gym_polar.rollouts.task import AgentSpec, EvaluatorSpec, RuntimeSpec, SessionStatus, TaskRequest
from tests.support.agents import MAKE, RESULT, check_nothing_is_lost, decoded, edges
from tests.support.fake_engine import FakeEngine, Fault
from tests.support.gemini_visits import SECOND
from tests.support.rollouts import Stand, stand

DATE = "Thursday, January 1, 2026"

Opened = Callable[..., AbstractAsyncContextManager[Stand]]


def shell(command: str) -> str:
    return tool_call("run_shell_command", {"command": command, "description": "Runs it"})


def answers(*said: str) -> Callable[[str], str]:
    """A policy that says one thing after the other, by how often it has spoken before; then that it is done."""
    return lambda context: (*said, "Done.")[min(context.count("<|im_start|>assistant") - 1, len(said))]


def gemini_task(**fields: Any) -> TaskRequest:
    return TaskRequest(
        task_id="gemini",
        instruction=fields.pop("instruction", "Create hello.txt in the current directory."),
        agent=AgentSpec(harness=fields.pop("harness", "gemini_cli"), settings=fields.pop("settings", {})),
        runtime=RuntimeSpec(backend="bubblewrap", files={"README": "A task.\n", "src/b.py": "", "src/a.py": ""}),
        evaluator=EvaluatorSpec(config={"command": "grep -qx hi hello.txt"}),
        **{"timeout_seconds": 120.0, **fields},
    )


@pytest.fixture(scope="module", autouse=True)
def gemini() -> None:
    GeminiCliHarness({}).install()


@pytest.fixture
def opened(engine: FakeEngine, tmp_path: Path) -> Opened:
    engine.script = answers(shell(MAKE))
    return partial(stand, engine, tmp_path, context_tokens=65536)


async def ran(bench: Stand, **fields: Any) -> tuple[SessionResult, Forest]:
    (session,) = (await bench.service.run(gemini_task(**fields))).sessions
    (journal,) = bench.journals
    return session, recover(journal).forest


async def solve(bench: Stand, **fields: Any) -> Forest:
    session, forest = await ran(bench, **fields)
    assert (session.status, session.error, session.reward) == (SessionStatus.COMPLETED, None, 1.0)
    check_nothing_is_lost(bench, forest)
    return forest


def assert_one_chain(bench: Stand, forest: Forest) -> None:
    """All that was kept is one chain, as the engine read it and sampled it."""
    (trace,) = build(forest).traces
    last = bench.engine.served[-1]
    assert trace.token_ids.tolist() == last.context + last.sampled
    kept = [turn.sampled.tolist() for turn in forest.turns if turn.has_tokens and turn.status is Status.KEPT]
    assert trace.token_ids[trace.loss_mask].tolist() == [token for sampled in kept for token in sampled]


WORK = (
    "First I look.\n" + shell("ls -la"),
    shell("printf 'a\u2028b \u00e9\\n' > odd.txt; cat odd.txt")
    + "\n"
    + tool_call("read_file", {"file_path": "README"}),
    tool_call("write_file", {"file_path": "/workspace/hello.txt", "content": "hi\n"}),
    tool_call(
        "replace",
        {"file_path": "hello.txt", "old_string": "no such", "new_string": "x", "instruction": "Fix it", "n": "1.50"},
    ),
    "All that was asked for is done now,\u2028and this answer is long enough for several pieces.",
)


async def test_files_change_and_tokens_are_kept_in_one_chain(opened: Opened) -> None:
    async with opened() as bench:
        bench.engine.script = answers(*WORK)
        forest = await solve(bench, settings={"date": DATE})
        assert edges(forest) == [Edge.ROOT] + [Edge.CONTINUE] * 4
        assert_one_chain(bench, forest)
        first = decoded(bench, bench.engine.served[0].context)
        assert "/workspace" in first and "a.py" in first and DATE in first
        for leak in (str(bench.directory), str(Path.home()), str(PACKAGE.directory), "polar-"):
            assert leak not in first


async def test_thinking_comes_back_though_the_cli_drops_it(opened: Opened) -> None:
    """In signatures of calls and of texts, shown or not."""
    async with opened(thinking=True) as bench:
        bench.engine.script = answers(*(f"I must do step {i}.\n</think>\n\n{said}" for i, said in enumerate(WORK)))
        forest = await solve(bench)
        assert edges(forest) == [Edge.ROOT] + [Edge.CONTINUE] * 4
        assert [turn.drift for turn in forest.turns] == [None] * 5
        assert_one_chain(bench, forest)
        assert "step 3" in decoded(bench, bench.engine.served[-1].context)


async def test_a_group_begins_with_one_prompt(opened: Opened) -> None:
    async with opened() as bench:
        group = await bench.service.run(gemini_task(num_samples=4, timeout_seconds=240.0))
        assert [session.reward for session in group.sessions] == [1.0] * 4
        assert group.first_prompt_mismatches == ()


@pytest.mark.parametrize("fault", ["429", "500"])
@pytest.mark.parametrize("late", [False, True])
async def test_a_fault_in_the_middle_is_asked_again(opened: Opened, fault: Fault, late: bool) -> None:
    """Early it has a status, late it is a reset after the headers."""
    faults = [fault]

    async with opened() as bench:

        def script(context: str) -> str:
            if RESULT not in context:
                return shell(MAKE)
            if faults:
                bench.engine.faults.append(faults.pop())
                return "Lost."
            return "Done."

        if late:  # an answer begins with what keeps a stream alive
            bench.engine.delay = 0.6
        else:  # on a busy machine an answer at once may take longer than that
            bench.gateway.settings = bench.gateway.settings.model_copy(update={"header_grace": 3600.0})
        bench.engine.script = script
        forest = await solve(bench)
        assert edges(forest) == [Edge.ROOT, Edge.CONTINUE]
        assert_one_chain(bench, forest)
        assert f"polar_broken_streams_total {float(late)}" in bench.gateway.metrics.text().decode()


async def test_an_empty_answer_is_asked_again_in_other_words(opened: Opened) -> None:
    """The CLI adds a word to its question and later leaves it out again, so what follows can't be one chain."""
    empty = ["", ""]
    async with opened() as bench:
        make = answers(shell(MAKE))
        bench.engine.script = lambda context: empty.pop() if empty else make(context)
        forest = await solve(bench)
        assert edges(forest) == [Edge.ROOT, Edge.ROOT, Edge.RETRY, Edge.ROOT]
        assert forest.turns[1].status is Status.UNSEEN
        assert (forest.turns[3].parent, forest.turns[3].cause) == (2, Cause.HISTORY_REWRITTEN)


async def test_arguments_that_are_no_object_are_told_and_asked_again(opened: Opened) -> None:
    def wrong(arguments: str) -> str:
        return f'<tool_call>\n{{"name": "run_shell_command", "arguments": {arguments}}}\n</tool_call>'

    said = iter([wrong('["ls"]'), wrong(f'{{"command": "{MAKE}", "description": "Runs it"}}'), "Done."])
    async with opened(renderer="qwen3") as bench:
        bench.engine.script = lambda _: next(said)
        forest = await solve(bench)
        assert edges(forest) == [Edge.ROOT, Edge.RETRY, Edge.CONTINUE]
        assert [turn.status for turn in forest.turns] == [Status.UNSEEN, Status.KEPT, Status.KEPT]
        wrong_answer = forest.answer(forest.turns[0])
        assert wrong_answer and wrong_answer.tool_calls[0].arguments == '["ls"]'
        assert_one_chain(bench, forest)


async def test_a_sub_agent_is_labelled(opened: Opened) -> None:
    task = "Find out which files there are in this folder and make hello.txt."
    inside = answers(shell(MAKE), tool_call("complete_task", {"result": '{"response": "Made."}'}))
    outside = answers(tool_call("invoke_agent", {"agent_name": "generalist", "prompt": task}))
    async with opened() as bench:
        bench.engine.script = lambda context: (inside if '"name": "complete_task"' in context else outside)(context)
        forest = await solve(bench)
        assert edges(forest) == [Edge.ROOT, Edge.SUB_AGENT, Edge.CONTINUE, Edge.CONTINUE]
        assert [turn.parent for turn in forest.turns] == [None, 0, 1, 0]
        assert len(build(forest).traces) == 2 and not build(forest).dropped


async def test_commands_see_neither_key_nor_address(opened: Opened) -> None:
    async with opened() as bench:
        bench.engine.script = answers(shell(f"env; id -un; {MAKE}"), shell("cat README"))
        await solve(bench, settings={"env": {"MINE": "here"}})
        seen = decoded(bench, bench.engine.served[1].context).split(RESULT)[1]
        assert "MINE=here" in seen and "\nagent\n" in seen
        assert "GEMINI_API_KEY" not in seen and "/s/" not in seen


@pytest.mark.parametrize("instruction", ["-- do it", "/no such command", "Long. " * 200])
async def test_instructions_of_any_shape(opened: Opened, instruction: str) -> None:
    async with opened() as bench:
        await solve(bench, instruction=instruction)
        assert instruction.strip() in decoded(bench, bench.engine.served[0].context)


async def test_skills_and_a_limit_of_turns(opened: Opened, tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greet\ndescription: Greets politely.\n---\nSay hi.\n")
    async with opened() as bench:
        bench.engine.script = answers(*[shell(MAKE)] * 9)
        session, forest = await ran(bench, settings={"skills": str(skill.parents[1]), "max_turns": 2})
        assert (session.status, session.reward) == (SessionStatus.TIMEOUT, 1.0)
        assert "max_turns=2" in str(session.error) and len(forest.turns) == 2
        assert "Greets politely." in decoded(bench, bench.engine.served[0].context)


async def test_a_context_that_is_too_long_is_a_clear_failure(opened: Opened) -> None:
    async with opened() as bench:
        session, _ = await ran(bench, instruction="Long. " * 30_000)
        assert session.status is SessionStatus.ERROR
        assert "exceeds the maximum number of tokens allowed (65536)" in str(session.error)


async def test_a_summary_takes_the_place_of_what_went_before(opened: Opened) -> None:
    summary = "<state_snapshot>\n<overall_goal>Files.</overall_goal>\nhello.txt is there.\n</state_snapshot>"

    def script(context: str) -> str:
        if "# Tools" not in context:
            return summary
        first, _, second = context.partition(SECOND)
        if second:
            return "Done." if RESULT in second else shell("echo bye > bye.txt")
        done = first.count(RESULT)
        return (shell("seq 1 2500"), shell("seq 1 2500"), shell(MAKE), "Done.")[min(done, 3)]

    async with opened() as bench:
        bench.engine.script = script
        forest = await solve(bench, harness="tests.support.gemini_visits:TwoVisits", settings={"compress_at": 0.02})
        kinds = [forest.kind(turn) for turn in forest.turns]
        assert kinds[:7] == ["main"] * 4 + ["compaction"] * 3
        assert set(kinds[7:]) == {"compaction"}
        after = forest.turns[6]
        assert after.edge is Edge.COMPACTION and after.context_length < forest.turns[3].context_length
