# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Pi in a real sandbox through the real gateway: it changes files, and its tokens are kept exactly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.harnesses.pi import PACKAGE, PiHarness
from nemo_gym_polar.rollouts.stages import Stage
from nemo_gym_polar.rollouts.task import AgentSpec, EvaluatorSpec, RuntimeSpec, SessionStatus, TaskRequest
from tests.support.agents import MAKE, Agent, answers, check_one_chain
from tests.support.fake_engine import FakeEngine, bash
from tests.support.rollouts import Stand, stand

CHECK = "grep -qx hi hello.txt"


def one_command(command: str) -> Any:
    """A policy that runs one command and then says that it is done."""
    return lambda context: "Done." if "<tool_response>" in context else bash(command)


def pi_task(evaluate: str = CHECK, **fields: Any) -> TaskRequest:
    settings = fields.pop("settings", {})
    return TaskRequest(
        task_id="pi",
        instruction=fields.pop("instruction", "Create hello.txt in the current directory."),
        agent=AgentSpec(settings=settings),
        runtime=RuntimeSpec(backend=fields.pop("backend", "bubblewrap"), files={"README": "A task.\n"}),
        evaluator=EvaluatorSpec(config={"command": evaluate}),
        **{"timeout_seconds": 120.0, **fields},
    )


@pytest.fixture(scope="module", autouse=True)
def pi() -> None:
    PiHarness({}).install()


@pytest.fixture
async def bench(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    engine.script = one_command("echo hi > hello.txt")
    async with stand(engine, tmp_path) as made:
        yield made


async def test_files_change_and_tokens_are_kept(bench: Stand) -> None:
    (session,) = (await bench.service.run(pi_task())).sessions
    assert (session.status, session.error, session.reward) == (SessionStatus.COMPLETED, None, 1.0)
    (trace,) = session.traces
    first, second = bench.engine.served
    assert trace.token_ids.tolist() == second.context + second.sampled
    assert second.context[: len(first.context) + len(first.sampled)] == first.context + first.sampled
    assert trace.token_ids[trace.loss_mask].tolist() == first.sampled + second.sampled
    expected = [pytest.approx(value) for value in first.logprobs + second.logprobs]
    assert trace.logprobs[trace.loss_mask].tolist() == expected
    (journal,) = bench.journals
    assert len(recover(journal).forest.turns) == 2


@pytest.mark.parametrize("api", ["openai-responses", "anthropic-messages", "google-generative-ai"])
async def test_every_other_api_that_pi_speaks_gives_one_chain(bench: Stand, api: str) -> None:
    pi = Agent("pi", {"api": api})
    bench.engine.script = answers("I look.\n" + pi.shell("ls -la"), pi.shell(MAKE), pi.shell("echo hi >> hello.txt"))
    solved = await pi.solve(bench, "test $(grep -cx hi hello.txt) = 2")
    assert len(solved.edges) == 4
    check_one_chain(bench, solved)


async def test_a_group_begins_with_one_prompt(bench: Stand) -> None:
    group = await bench.service.run(pi_task(num_samples=4))
    assert [session.reward for session in group.sessions] == [1.0] * 4
    assert group.first_prompt_mismatches == ()
    firsts = [
        served.context for served in bench.engine.served if "<tool_response>" not in decoded(bench, served.context)
    ]
    assert len(firsts) == 4
    assert all(first == firsts[0] for first in firsts)
    assert bench.peaks[Stage.RUNNING] >= 2


def decoded(bench: Stand, ids: list[int]) -> str:
    tokenizer = bench.engine._tokenizer
    assert tokenizer is not None
    return tokenizer.decode(ids, skip_special_tokens=False)


async def test_nothing_of_the_host_is_in_the_prompt(bench: Stand, tmp_path: Path) -> None:
    await bench.service.run(pi_task())
    prompt = decoded(bench, bench.engine.served[0].context)
    assert "/workspace" in prompt
    for leak in (str(tmp_path), str(Path.home()), str(PACKAGE.directory), "polar-"):
        assert leak not in prompt


async def test_pi_sees_its_sandbox_only(bench: Stand) -> None:
    bench.engine.script = one_command("(id -un; hostname; pwd; ls /; cat README; ls /root /work 2>&1) > seen.txt")
    check = "grep -qx agent seen.txt && grep -qx polar seen.txt && grep -q 'A task' seen.txt"
    (session,) = (await bench.service.run(pi_task(check + " && [ $(grep -c 'No such file' seen.txt) = 2 ]"))).sessions
    assert session.reward == 1.0, session.metadata


@pytest.mark.parametrize("settings", [{"output": "text"}, {"tools": ["bash"]}, {"model": "other"}])
async def test_settings(bench: Stand, settings: dict[str, Any]) -> None:
    (session,) = (await bench.service.run(pi_task(settings=settings))).sessions
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)


@pytest.mark.parametrize("instruction", ["@README says it.", "-- do it", "Long. " * 200])
async def test_instructions_of_any_shape(bench: Stand, instruction: str) -> None:
    (session,) = (await bench.service.run(pi_task(instruction=instruction))).sessions
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)
    assert instruction.strip() in decoded(bench, bench.engine.served[0].context)


async def test_an_instruction_beyond_the_context_is_a_clear_failure(bench: Stand) -> None:
    (session,) = (await bench.service.run(pi_task(instruction="Long. " * 30_000))).sessions
    assert session.status is SessionStatus.ERROR
    assert "never got an answer from the model (pi ended with «error»" in str(session.error)


async def test_a_failure_is_seen_behind_exit_code_zero(bench: Stand) -> None:
    bench.engine.faults.extend(["400"] * 20)
    (session,) = (await bench.service.run(pi_task("true"))).sessions
    assert session.status is SessionStatus.ERROR
    assert session.metadata["harness"]["exit_code"] == 0
    assert session.traces == []


async def test_pi_asks_again_when_the_engine_dies(bench: Stand) -> None:
    bench.engine.faults.extend(["die"] * 3)
    (session,) = (await bench.service.run(pi_task())).sessions
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)


async def test_a_hanging_engine_is_a_time_out_with_what_there_was(bench: Stand) -> None:
    def hang_after_the_first(context: str) -> str:
        asyncio.get_running_loop().call_later(0.02, bench.engine.faults.append, "hang")
        return bash("echo hi > hello.txt")

    bench.engine.script = hang_after_the_first
    (session,) = (await bench.service.run(pi_task(metadata={"agent_timeout": 4.0}))).sessions
    assert (session.status, session.reward) == (SessionStatus.TIMEOUT, 1.0)
    assert session.metadata["turns"] == 1
    assert session.traces[0].trained_tokens > 0


async def test_what_the_policy_starts_dies_with_pi(bench: Stand) -> None:
    bench.engine.script = one_command("setsid nohup sleep 987654 >/dev/null 2>&1 & echo hi > hello.txt")
    alive = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done 2>/dev/null | grep -q '[9]87654' && exit 1; "
    (session,) = (await bench.service.run(pi_task(alive + CHECK))).sessions
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)


async def test_local(bench: Stand) -> None:
    with pytest.warns(UserWarning, match="isolates nothing"):
        (session,) = (await bench.service.run(pi_task(backend="local"))).sessions
    assert (session.status, session.reward) == (SessionStatus.COMPLETED, 1.0)
