# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real Pi through the gateway: several turns, streams, retries; every sampled token in one chain."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.turn import Edge, Status
from nemo_gym_polar.gateway import Session
from nemo_gym_polar.harnesses import node
from nemo_gym_polar.harnesses.base import HarnessContext
from nemo_gym_polar.harnesses.pi import CLI, PACKAGE, PROVIDER, QUIET, PiHarness
from tests.support.fake_engine import FakeEngine, Fault, bash
from tests.support.gateways import Bench, bench

SECONDS = 120
BROKEN = "<tool_call>\n<function=bash>\n<parameter=command>\nls"


@pytest.fixture(scope="session")
def pi() -> PiHarness:
    harness = PiHarness({})
    harness.install()
    return harness


@pytest.fixture
async def stand(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(engine, tmp_path / "journals", header_grace=0.1, keep_alive=0.2) as stand:
        yield stand


async def run(pi: PiHarness, stand: Bench, session: Session, directory: Path) -> bytes:
    """One headless run in `directory`/workspace; what Pi printed."""
    workspace, agent = directory / "workspace", directory / ".pi" / "agent"
    for made in (workspace, agent):
        made.mkdir(parents=True)
    context = HarnessContext(
        instruction="Create hello.txt",
        base_url=stand.server.url + session.path,
        secret=session.secret,
        model="polar-policy",
        home=str(directory),
        workspace=str(workspace),
        context_tokens=32768,
        max_tokens=1024,
    )
    (agent / "models.json").write_bytes(pi.models(context, "polar-policy"))
    process = await asyncio.create_subprocess_exec(
        str(node.binary()),
        str(PACKAGE.directory / CLI),
        *("-p", "--provider", PROVIDER, "--model", "polar-policy", "--mode", "json", "--no-session"),
        context.instruction,
        cwd=workspace,
        env={**QUIET, "HOME": str(directory), "PATH": os.environ["PATH"]},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
    return out


def assert_one_exact_chain(forest: Forest, stand: Bench) -> None:
    """The main chain is what the engine read and sampled last, and every sampled token is owned once or counted."""
    kept = [turn for turn in forest.turns if turn.status is Status.KEPT]
    chain = forest.chain(kept[-1].index)
    assert chain == kept
    last = stand.engine.served[-1]
    assert forest.tokens(chain[-1].index).tolist() == last.context + last.sampled
    for turn in forest.turns:
        twins = [
            served.sampled for served in stand.engine.served if served.context == forest.context(turn.index).tolist()
        ]
        assert not len(turn.sampled) or turn.sampled.tolist() in twins
    built = build(forest)
    assert len(built.traces) == 1
    sampled = sum(len(turn.sampled) for turn in forest.turns)
    assert built.trained_tokens + sum(built.dropped.values()) == sampled


async def test_a_session_with_tools(pi: PiHarness, stand: Bench, tmp_path: Path) -> None:
    commands = ["ls -la", "echo 'h\u00e9llo \"w\u00f6rld\"' > hello.txt", "cat hello.txt"]
    answers = iter(["First I look.\n" + bash(commands[0]), bash(commands[1]) + "\n" + bash(commands[2]), "Done."])
    stand.engine.script = lambda _: next(answers)
    session = await stand.gateway.open()
    out = await run(pi, stand, session, tmp_path / "run")
    forest = await stand.gateway.finish(session.id)
    assert (tmp_path / "run" / "workspace" / "hello.txt").read_text() == 'h\u00e9llo "w\u00f6rld"\n', out[-2000:]
    assert [turn.edge for turn in forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
    assert_one_exact_chain(forest, stand)
    assert build(forest).trained_tokens == sum(len(served.sampled) for served in stand.engine.served)


@pytest.mark.parametrize("fault", ["500", "429", "nan"])
@pytest.mark.parametrize("late", [False, True])
async def test_a_fault_in_the_middle_is_retried(
    pi: PiHarness, stand: Bench, tmp_path: Path, fault: Fault, late: bool
) -> None:
    """Early it has a status, late it is a reset after the headers: Pi asks again either way."""

    faults = [fault]
    if not late:  # on a busy machine an answer at once may take longer than that
        stand.gateway.settings = stand.gateway.settings.model_copy(update={"header_grace": 3600.0})

    def script(text: str) -> str:
        if "<tool_response>" not in text:
            stand.engine.delay = 0.5 if late else 0.0
            return bash("touch hello.txt")
        stand.engine.delay = 0.0
        if faults:
            stand.engine.faults.append(faults.pop())
            return "Lost."
        return "Done."

    stand.engine.script = script
    session = await stand.gateway.open()
    out = await run(pi, stand, session, tmp_path / "run")
    forest = await stand.gateway.finish(session.id)
    assert (tmp_path / "run" / "workspace" / "hello.txt").exists(), out[-2000:]
    assert b"Done." in out
    assert f"polar_broken_streams_total {1.0 if late else 0.0}" in stand.gateway.metrics.text().decode()
    assert_one_exact_chain(forest, stand)


async def test_a_broken_call_is_seen_and_a_wrong_tool_is_told(pi: PiHarness, stand: Bench, tmp_path: Path) -> None:
    answers = iter([bash("ls").replace("=bash", "=no_such_tool"), bash("touch hello.txt"), "Look:\n" + BROKEN])
    stand.engine.script = lambda _: next(answers)
    session = await stand.gateway.open()
    out = await run(pi, stand, session, tmp_path / "run")
    forest = await stand.gateway.finish(session.id)
    assert (tmp_path / "run" / "workspace" / "hello.txt").exists(), out[-2000:]
    assert b"function=bash" in out
    assert_one_exact_chain(forest, stand)
