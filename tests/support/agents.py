# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What tests of real agents share: policies that say one thing after the other, and what must be true of the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from nemo_gym_polar.engines.scripted import tool_call
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import recover
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.rollouts.task import (
    AgentSpec,
    EvaluatorSpec,
    RuntimeSpec,
    SessionResult,
    SessionStatus,
    TaskRequest,
)
from tests.support.fake_engine import Fault
from tests.support.rollouts import Stand

RESULT = "<tool_response>"
MAKE = "echo hi > hello.txt"
LATE = 0.8  # seconds; the stand's gateway sends its headers after 0.3


def json_call(name: str, arguments: dict[str, str] | str) -> str:
    """What a model of the Qwen3 family writes to call a tool; arguments as a text need not be JSON."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def answers(*said: str) -> Callable[[str], str]:
    """A policy that says one thing after the other, by how many results it has read; then that it is done."""
    return lambda context: (*said, "Done.")[min(context.count(RESULT), len(said))]


def failing_once(bench: Stand, fault: Fault, late: bool, *said: str) -> Callable[[str], str]:
    """The same, but the engine fails once after the first result: at once, or `late`, with the headers already sent."""
    faults = [fault]
    policy = answers(*said)
    if not late:  # on a busy machine an answer at once may take longer than that
        bench.gateway.settings = bench.gateway.settings.model_copy(update={"header_grace": 3600.0})

    def script(context: str) -> str:
        answer = policy(context)
        if RESULT in context and faults:
            bench.engine.faults.append(faults.pop())
            return answer
        bench.engine.delay = LATE if late and faults else 0.0
        return answer

    return script


@dataclass(frozen=True, slots=True)
class Agent:
    """One harness and the settings that a test runs it with."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def shell(self, command: str) -> str:
        """What a policy says to run `command`."""
        tool = make_harness(self.name).about.shell_tool
        return tool_call(tool.name, {tool.argument: command, **tool.others})

    def task(self, evaluate: str = "grep -qx hi hello.txt", **fields: Any) -> TaskRequest:
        settings = {**self.settings, **fields.pop("settings", {})}
        return TaskRequest(
            task_id=self.name,
            instruction=fields.pop("instruction", "Create hello.txt in the current directory."),
            agent=AgentSpec(harness=self.name, settings=settings),
            runtime=RuntimeSpec(backend="bubblewrap", files={"README": "A task.\n"}),
            evaluator=EvaluatorSpec(config={"command": evaluate}),
            **{"timeout_seconds": 180.0, **fields},
        )

    async def solve(self, bench: Stand, evaluate: str = "grep -qx hi hello.txt", **fields: Any) -> Solved:
        """Run one session that is to succeed, with nothing lost."""
        (session,) = (await bench.service.run(self.task(evaluate, **fields))).sessions
        assert (session.status, session.error, session.reward) == (SessionStatus.COMPLETED, None, 1.0)
        (journal,) = bench.journals
        forest = recover(journal).forest
        check_nothing_is_lost(bench, forest)
        return Solved(session, forest)


@dataclass(frozen=True, slots=True)
class Solved:
    session: SessionResult
    forest: Forest

    @property
    def edges(self) -> list[Edge]:
        return edges(self.forest)

    @property
    def traces(self) -> list[tuple[str, tuple[int, ...]]]:
        return [(trace.kind, trace.turns) for trace in self.session.traces]


def edges(forest: Forest) -> list[Edge]:
    """Of the calls that the engine answered."""
    return [turn.edge for turn in forest.turns if turn.has_tokens]


def check_nothing_is_lost(bench: Stand, forest: Forest) -> None:
    """Every token that the engine sampled is in the forest as it was sampled, and trained on once or counted."""
    served = [(one.context, one.sampled) for one in bench.engine.served]
    kept = [turn for turn in forest.turns if turn.has_tokens]
    assert sorted((forest.context(turn.index).tolist(), turn.sampled.tolist()) for turn in kept) == sorted(served)
    built = build(forest)
    assert built.trained_tokens + sum(built.dropped.values()) == sum(len(turn.sampled) for turn in kept)


def check_one_chain(bench: Stand, solved: Solved) -> None:
    """The session is one trace, whose tokens are what the engine read and sampled, with its log-probabilities."""
    assert solved.edges == [Edge.ROOT] + [Edge.CONTINUE] * (len(bench.engine.served) - 1)
    (trace,) = solved.session.traces
    last = bench.engine.served[-1]
    assert trace.token_ids.tolist() == last.context + last.sampled
    assert trace.token_ids[trace.loss_mask].tolist() == [
        token for served in bench.engine.served for token in served.sampled
    ]
    expected = [pytest.approx(value) for served in bench.engine.served for value in served.logprobs]
    assert trace.logprobs[trace.loss_mask].tolist() == expected
    assert not solved.session.dropped


def decoded(bench: Stand, ids: list[int]) -> str:
    tokenizer = bench.engine._tokenizer
    assert tokenizer is not None
    return tokenizer.decode(ids, skip_special_tokens=False)
