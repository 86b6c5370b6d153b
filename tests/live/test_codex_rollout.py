# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Codex in a real sandbox through the real gateway: what it changes, what it asks again, what it delegates."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Edge, Status
from nemo_gym_polar.gateway.settings import SamplingProfile
from nemo_gym_polar.harnesses.codex import PACKAGE, CodexHarness
from nemo_gym_polar.rollouts.results import SessionResult
from nemo_gym_polar.rollouts.task import AgentSpec, EvaluatorSpec, RuntimeSpec, SessionStatus, TaskRequest
from tests.support.fake_engine import FakeEngine, Fault
from tests.support.rollouts import Stand, stand

MAKE = "echo hi > hello.txt"
SUMMARY = "The folder was listed at length; what is left to do is to make the file hello.txt that was asked for."


def call(tool: str, **arguments: str) -> str:
    """What a policy writes to call `tool`."""
    said = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in arguments.items())
    return f"<tool_call>\n<function={tool}>\n{said}</function>\n</tool_call>"


def shell(command: str) -> str:
    return call("exec_command", cmd=command)


def answers(*said: str) -> Callable[[str], str]:
    """A policy that says one thing after the other, by how many results it has read; then that it is done."""
    return lambda context: (*said, "Done.")[min(context.count("<tool_response>"), len(said))]


def codex_task(**fields: Any) -> TaskRequest:
    return TaskRequest(
        task_id="codex",
        instruction="Create hello.txt in the current directory.",
        agent=AgentSpec(harness="codex", settings=fields.pop("settings", {})),
        runtime=RuntimeSpec(backend="bubblewrap", files={"README": "A task.\n"}),
        evaluator=EvaluatorSpec(config={"command": "grep -qx hi hello.txt"}),
        **{"timeout_seconds": 120.0, **fields},
    )


@pytest.fixture(scope="module", autouse=True)
def codex() -> None:
    CodexHarness({}).install()


@pytest.fixture
async def bench(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    engine.script = answers(shell(MAKE))
    async with stand(engine, tmp_path) as made:
        settings = made.gateway.settings
        made.gateway.settings = settings.model_copy(update={"keep_alive": 0.3})
        yield made


async def solve(bench: Stand, **fields: Any) -> tuple[SessionResult, Forest]:
    (session,) = (await bench.service.run(codex_task(**fields))).sessions
    assert (session.status, session.error, session.reward) == (SessionStatus.COMPLETED, None, 1.0)
    (journal,) = bench.journals
    forest = recover(journal).forest
    assert_nothing_is_orphaned(bench, forest)
    return session, forest


def assert_nothing_is_orphaned(bench: Stand, forest: Forest) -> None:
    """Every token that the engine sampled is in the forest as it was sampled, and trained on once or counted."""
    served = [(one.context, one.sampled) for one in bench.engine.served]
    kept = [turn for turn in forest.turns if turn.has_tokens]
    assert [(forest.context(turn.index).tolist(), turn.sampled.tolist()) for turn in kept] == served
    built = build(forest)
    assert built.trained_tokens + sum(built.dropped.values()) == sum(len(turn.sampled) for turn in kept)


def edges(forest: Forest) -> list[Edge]:
    return [turn.edge for turn in forest.turns if turn.has_tokens]


async def test_files_change_and_tokens_are_kept_in_one_chain(bench: Stand) -> None:
    bench.engine.script = answers("First I look.\n" + shell("ls -la"), shell(MAKE), shell("cat hello.txt"))
    session, forest = await solve(bench, settings={"args": ["--strict-config"]})
    assert edges(forest) == [Edge.ROOT] + [Edge.CONTINUE] * 3
    (trace,) = session.traces
    last = bench.engine.served[-1]
    assert trace.token_ids.tolist() == last.context + last.sampled
    sampled = [token for served in bench.engine.served for token in served.sampled]
    assert trace.token_ids[trace.loss_mask].tolist() == sampled
    logprobs = [pytest.approx(value) for served in bench.engine.served for value in served.logprobs]
    assert trace.logprobs[trace.loss_mask].tolist() == logprobs


async def test_parallel_calls_and_thinking_are_one_chain(bench: Stand) -> None:
    bench.engine.script = answers("<think>\nI think.\n</think>\n\nBoth:\n" + shell(MAKE) + "\n" + shell("ls"))
    _, forest = await solve(bench)
    assert edges(forest) == [Edge.ROOT, Edge.CONTINUE]
    assert forest.turns[1].drift is None


async def test_a_group_begins_with_one_prompt_that_tells_nothing_of_the_host(bench: Stand, tmp_path: Path) -> None:
    group = await bench.service.run(codex_task(num_samples=4))
    assert [session.reward for session in group.sessions] == [1.0] * 4
    assert group.first_prompt_mismatches == ()
    tokenizer = bench.engine._tokenizer
    assert tokenizer is not None
    prompts = [tokenizer.decode(one.context, skip_special_tokens=False) for one in bench.engine.served]
    firsts = {prompt for prompt in prompts if "<tool_response>" not in prompt}
    assert len(firsts) == 1
    for leak in (str(tmp_path), f"{Path.home()}/", str(PACKAGE.directory), "polar-", "imagegen"):
        assert leak not in next(iter(firsts))


@pytest.mark.parametrize(("fault", "late"), [("500", True), ("500", False), ("429", False)])
async def test_a_fault_in_the_middle_is_asked_again(bench: Stand, fault: Fault, late: bool) -> None:
    """Early it has a status, late the stream breaks after its headers: Codex asks again either way."""
    faults = [fault]

    def script(context: str) -> str:
        if "<tool_response>" not in context:
            bench.engine.delay = 0.8 if late else 0.0
            return shell(MAKE)
        if faults:
            bench.engine.faults.append(faults.pop())
            return "Lost."
        bench.engine.delay = 0.0
        return "Done."

    bench.engine.script = script
    _, forest = await solve(bench)
    assert edges(forest) == [Edge.ROOT, Edge.CONTINUE]
    assert [turn.status for turn in forest.turns] == [Status.KEPT, Status.FAILED, Status.KEPT]
    assert f"polar_broken_streams_total {1.0 if late else 0.0}" in bench.gateway.metrics.text().decode()


async def test_a_stream_that_is_silent_is_given_up_and_asked_again(bench: Stand) -> None:
    bench.gateway.settings = bench.gateway.settings.model_copy(update={"keep_alive": 60.0})
    bench.engine.delay = 3.0

    bench.engine.script = answers(shell("ls"), shell(MAKE))
    running = asyncio.create_task(solve(bench, settings={"idle_seconds": 0.7}))
    async with asyncio.timeout(30):
        while not bench.engine.aborted:  # noqa: ASYNC110  # the engine is another's, and tells nobody
            await asyncio.sleep(0.05)
    bench.engine.delay = 0.0
    _, forest = await running
    assert bench.engine.aborted == 1
    assert edges(forest) == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]


async def test_an_answer_that_was_cut_ends_codex_and_counts(bench: Stand) -> None:
    """The policy's own doing: the run is scored, not set aside as broken."""
    sampling = SamplingProfile(max_tokens=80)
    bench.gateway.settings = bench.gateway.settings.model_copy(update={"sampling": sampling})
    bench.engine.script = answers(shell(MAKE), "word " * 100)
    session, forest = await solve(bench)
    assert forest.turns[-1].finish_reason == "length"
    assert session.metadata["harness"]["exit_code"] == 1


async def test_keep_alives_keep_codex_waiting(bench: Stand) -> None:
    bench.engine.delay = 2.5
    _, forest = await solve(bench, settings={"idle_seconds": 1.0, "retries": 0})
    assert edges(forest) == [Edge.ROOT, Edge.CONTINUE]


async def test_a_sub_agent_is_labelled(bench: Stand) -> None:
    def script(context: str) -> str:
        if "Create hello.txt" not in context:
            return answers(shell("ls"), "The folder has a README.")(context)
        ids = re.findall(r'"agent_id":"([0-9a-f-]+)"', context)
        spawn = call("multi_agent_v1__spawn_agent", message="List the files of this folder.")
        wait = call("multi_agent_v1__wait_agent", targets=f'["{ids[0] if ids else ""}"]', timeout_ms="20000")
        return answers(spawn, wait, shell(MAKE))(context)

    bench.engine.script = script
    session, forest = await solve(bench, settings={"sub_agents": True})
    (begun,) = (turn for turn in forest.turns if turn.edge is Edge.SUB_AGENT)
    assert begun.parent == 0
    assert sorted(edges(forest)) == sorted([Edge.ROOT, Edge.SUB_AGENT] + [Edge.CONTINUE] * 4)
    assert len(session.traces) == 2


async def test_an_agent_that_knows_the_history_is_labelled(bench: Stand) -> None:
    def script(context: str) -> str:
        if context.count("List the files of this folder.") > 1:
            return "The folder has a README."
        ids = re.findall(r'"agent_id":"([0-9a-f-]+)"', context)
        spawn = call("multi_agent_v1__spawn_agent", message="List the files of this folder.", fork_context="true")
        wait = call("multi_agent_v1__wait_agent", targets=f'["{ids[0] if ids else ""}"]', timeout_ms="20000")
        return answers(shell(MAKE), spawn, wait)(context)

    bench.engine.script = script
    _, forest = await solve(bench, settings={"sub_agents": True})
    assert [turn.edge for turn in forest.turns].count(Edge.SUB_AGENT) == 1


@pytest.mark.parametrize("summary", [SUMMARY, "Ok."])
async def test_compaction_is_labelled(bench: Stand, summary: str) -> None:
    said = iter([shell("seq 1 400"), shell("seq 1 400"), summary, shell(MAKE), "Done."])
    bench.engine.script = lambda _: next(said)
    _, forest = await solve(bench, settings={"compact_at": 13_500})
    assert edges(forest) == [Edge.ROOT, Edge.CONTINUE, Edge.COMPACTION, Edge.COMPACTION, Edge.CONTINUE]
    assert [turn.parent for turn in forest.turns] == [None, 0, 1, 2, 3]


async def test_wrong_calls_are_told_and_broken_ones_are_seen(bench: Stand) -> None:
    wrong = call("exec_command", command="ls")
    said = [wrong, call("no_such_tool", x="1"), shell(MAKE), "Look:\n" + shell("ls").removesuffix("</tool_call>")]
    bench.engine.script = lambda context: said[min(context.count("<tool_response>"), 3)]
    _, forest = await solve(bench)
    assert edges(forest) == [Edge.ROOT] + [Edge.CONTINUE] * 3
    assert all(turn.drift is None for turn in forest.turns)


async def test_a_failed_run_is_told(bench: Stand) -> None:
    bench.engine.faults.extend(["400"] * 20)
    (session,) = (await bench.service.run(codex_task())).sessions
    assert session.status is SessionStatus.ERROR
    assert "never got an answer from the model (codex failed: " in str(session.error)
    assert session.traces == []
