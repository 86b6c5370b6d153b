# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Codex in a real sandbox through the real gateway: what it changes, what it asks again, what it delegates."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Edge, Status
from nemo_gym_polar.gateway.settings import SamplingProfile
from nemo_gym_polar.harnesses.codex import PACKAGE, CodexHarness
from nemo_gym_polar.rollouts.results import SessionResult
from nemo_gym_polar.rollouts.task import AgentSpec, EvaluatorSpec, RuntimeSpec, SessionStatus, TaskRequest
from tests.support.agents import MAKE, RESULT, answers, check_nothing_is_lost, decoded, edges, failing_once
from tests.support.fake_engine import FakeEngine, Fault
from tests.support.rollouts import Stand, stand

SUMMARY = "The folder was listed at length; what is left to do is to make the file hello.txt that was asked for."


def shell(command: str) -> str:
    return tool_call("exec_command", {"cmd": command})


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
    check_nothing_is_lost(bench, forest)
    return session, forest


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
    prompts = [decoded(bench, one.context) for one in bench.engine.served]
    (first,) = {prompt for prompt in prompts if RESULT not in prompt}
    for leak in (str(tmp_path), f"{Path.home()}/", str(PACKAGE.directory), "polar-", "imagegen"):
        assert leak not in first


@pytest.mark.parametrize(("fault", "late"), [("500", True), ("500", False), ("429", False)])
async def test_a_fault_in_the_middle_is_asked_again(bench: Stand, fault: Fault, late: bool) -> None:
    """Early it has a status, late the stream breaks after its headers: Codex asks again either way."""
    bench.engine.script = failing_once(bench, fault, late, shell(MAKE))
    _, forest = await solve(bench)
    assert edges(forest) == [Edge.ROOT, Edge.CONTINUE]
    assert [turn.status for turn in forest.turns] == [Status.KEPT, Status.FAILED, Status.KEPT]
    assert f"polar_broken_streams_total {1.0 if late else 0.0}" in bench.gateway.metrics.text().decode()


async def test_a_stream_that_is_silent_is_given_up_and_asked_again(bench: Stand) -> None:
    bench.gateway.settings = bench.gateway.settings.model_copy(update={"keep_alive": 60.0})
    bench.engine.faults.append("hang")
    bench.engine.script = answers(shell("ls"), shell(MAKE))
    _, forest = await solve(bench, settings={"idle_seconds": 3.0})
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
    bench.engine.delay = 4.0
    _, forest = await solve(bench, settings={"idle_seconds": 2.5, "retries": 0})
    assert edges(forest) == [Edge.ROOT, Edge.CONTINUE]


def waiting(ids: list[str]) -> str:
    return tool_call("multi_agent_v1__wait_agent", {"targets": json.dumps(ids[:1] or [""]), "timeout_ms": "20000"})


async def test_a_sub_agent_is_labelled(bench: Stand) -> None:
    def script(context: str) -> str:
        if "Create hello.txt" not in context:
            return answers(shell("ls"), "The folder has a README.")(context)
        ids = re.findall(r'"agent_id":"([0-9a-f-]+)"', context)
        spawn = tool_call("multi_agent_v1__spawn_agent", {"message": "List the files of this folder."})
        wait = waiting(ids)
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
        task = {"message": "List the files of this folder.", "fork_context": "true"}
        spawn = tool_call("multi_agent_v1__spawn_agent", task)
        wait = waiting(ids)
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
    wrong = tool_call("exec_command", {"command": "ls"})
    said = [
        wrong,
        tool_call("no_such_tool", {"x": "1"}),
        shell(MAKE),
        "Look:\n" + shell("ls").removesuffix("</tool_call>"),
    ]
    bench.engine.script = lambda context: said[min(context.count(RESULT), 3)]
    _, forest = await solve(bench)
    assert edges(forest) == [Edge.ROOT] + [Edge.CONTINUE] * 3
    assert all(turn.drift is None for turn in forest.turns)


async def test_a_failed_run_is_told(bench: Stand) -> None:
    bench.engine.faults.extend(["400"] * 20)
    (session,) = (await bench.service.run(codex_task())).sessions
    assert session.status is SessionStatus.ERROR
    assert "never got an answer from the model (codex failed: " in str(session.error)
    assert session.traces == []
