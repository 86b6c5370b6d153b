# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What holds of several real agents alike, in a real sandbox through the real gateway: what each does, not how."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.turn import Status
from nemo_gym_polar.harnesses import opencode, qwen_code
from nemo_gym_polar.harnesses.install import NpmPackage
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.agents import MAKE, RESULT, Agent, answers, check_one_chain, decoded, failing_once
from tests.support.fake_engine import FakeEngine, Fault
from tests.support.rollouts import Stand, stand


@dataclass(frozen=True, slots=True)
class Case:
    """`context_tokens` are what its own prompt needs; `package` is where it is installed; `reason` is what a failed run
    says."""

    agent: Agent
    apis: tuple[str, ...]
    context_tokens: int
    package: NpmPackage
    instruction: str
    reason: str


CASES = [
    Case(
        Agent("opencode"),
        ("openai-compatible", "openai", "anthropic", "google"),
        32_768,
        opencode.PACKAGE,
        "\nCreate hello.txt in the current directory.<|im_end|>",
        "opencode ended with an error",
    ),
    Case(
        Agent("qwen_code"),
        ("openai", "openai-responses", "anthropic", "gemini"),
        200_000,
        qwen_code.PACKAGE,
        "Create hello.txt in the current directory.<|im_end|>",
        "qwen ended with «error_during_execution»",
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.agent.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
async def bench(case: Case, engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Stand]:
    make_harness(case.agent.name).install()
    engine.script = answers(case.agent.shell(MAKE))
    async with stand(engine, tmp_path, context_tokens=case.context_tokens) as made:
        yield made


@pytest.mark.parametrize(
    ("case", "api"),
    [pytest.param(case, api, id=f"{case.agent.name}-{api}") for case in CASES for api in case.apis],
)
async def test_files_change_and_tokens_are_kept_in_one_chain(bench: Stand, case: Case, api: str) -> None:
    shell = case.agent.shell
    bench.engine.script = answers("I look.\n" + shell("ls -la"), shell(MAKE), shell("echo hi >> hello.txt"))
    solved = await case.agent.solve(bench, "test $(grep -cx hi hello.txt) = 2", settings={"api": api})
    assert len(solved.edges) == 4
    check_one_chain(bench, solved)


async def test_a_group_begins_with_one_prompt_that_tells_nothing_of_the_host(
    bench: Stand, case: Case, tmp_path: Path
) -> None:
    group = await bench.service.run(case.agent.task(num_samples=4))
    assert [session.reward for session in group.sessions] == [1.0] * 4
    assert group.first_prompt_mismatches == ()
    prompts = [decoded(bench, served.context) for served in bench.engine.served]
    (first,) = {prompt for prompt in prompts if RESULT not in prompt}
    assert case.instruction in first
    for leak in (str(tmp_path), str(case.package.directory), "polar-check", bench.server.url):
        assert leak not in first


@pytest.mark.parametrize(("fault", "late"), [("429", False), ("500", True)])
async def test_it_asks_again_after_a_fault(bench: Stand, case: Case, fault: Fault, late: bool) -> None:
    """Early it has a status, late the stream is reset after its headers."""
    bench.engine.script = failing_once(bench, fault, late, case.agent.shell(MAKE))
    solved = await case.agent.solve(bench)
    assert [turn.status for turn in solved.forest.turns] == [Status.KEPT, Status.FAILED, Status.KEPT]
    assert f"polar_broken_streams_total {float(late)}" in bench.gateway.metrics.text().decode()
    check_one_chain(bench, solved)


async def test_an_unknown_tool_is_one_chain_too(bench: Stand, case: Case) -> None:
    bench.engine.script = answers(tool_call("launch", {"target": "moon"}), case.agent.shell(MAKE))
    check_one_chain(bench, await case.agent.solve(bench))


async def test_a_failing_engine_is_a_failed_run_with_its_reason(bench: Stand, case: Case) -> None:
    bench.engine.faults.extend(["400"] * 20)
    (session,) = (await bench.service.run(case.agent.task("true"))).sessions
    assert session.status is SessionStatus.ERROR
    assert case.reason in str(session.error)
