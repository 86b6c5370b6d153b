# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The real agents, when their session's budget runs out in the middle of the work: they end, and soon."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nemo_gym_polar.dialects.base import WhenExhausted
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Flag
from nemo_gym_polar.gateway import Gateway
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.rollouts.task import SessionStatus
from tests.support.agents import MAKE, Agent
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import stand

AGENTS = ("codex", "claude_code", "qwen_code", "pi", "gemini_cli", "opencode")
MOST_TRIES = 8  # Claude Code leaves out one feature after the other before it believes an error


def refusals(gateway: Gateway) -> float:
    families = text_string_to_metric_families(gateway.metrics.text().decode())
    return sum(one.value for family in families for one in family.samples if one.name == "polar_budget_refusals_total")


@pytest.mark.parametrize("told", ["error", "answer"])
@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_ends_at_once(engine: FakeEngine, tmp_path: Path, name: str, told: WhenExhausted) -> None:
    """The policy never ends by itself. An error ends the agent as a failure, an answer as if the work were done."""
    make_harness(name).install()
    agent = Agent(name)
    engine.script = lambda _: agent.shell(MAKE)
    async with stand(engine, tmp_path, context_tokens=131072, max_turns=2, when_exhausted=told) as bench:
        (session,) = (await bench.service.run(agent.task())).sessions
        assert 1 <= refusals(bench.gateway) <= MOST_TRIES
        (journal,) = bench.journals
    assert not session.metadata["harness"]["killed_for"]
    recovered = recover(journal)
    assert recovered.closed is not None
    assert recovered.closed["exhausted"] == {"budget": "turns", "limit": 2, "used": 3, "over": 1}
    told_turns = [turn for turn in recovered.forest.turns if Flag.EXHAUSTED in turn.flags]
    assert len(engine.served) == 2
    assert sum(trace.trained_tokens for trace in session.traces) == sum(len(one.sampled) for one in engine.served)
    if told == "answer":
        assert (session.status, session.reward, session.error) == (SessionStatus.COMPLETED, 1.0, None)
        assert told_turns
    else:
        assert (session.status, session.error) == (SessionStatus.TIMEOUT, "the session used up its 2 turns")
        assert not told_turns
