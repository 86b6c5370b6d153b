# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A thinking policy over three questions: what `keep` and `strip` make of its chain, and what each costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nemo_gym_polar.engines.families import History
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.turn import Cause, Edge
from tests.support.fake_engine import FakeEngine, bash
from tests.support.gateways import Bench, bench, chat, result, user

ANSWERS = (
    "I list it.\n</think>\n\n" + bash("ls"),
    "It is empty.\n</think>\n\nThere is nothing.",
    "Again, then.\n</think>\n\nStill nothing.",
    "He is done.\n</think>\n\nGoodbye.",
)


async def converse(stand: Bench, *, repeat_thinking: bool) -> Forest:
    """Three questions, the first with a tool call; the harness repeats the policy's thinking, or doesn't."""
    answers = iter(ANSWERS)
    stand.engine.script = lambda _: next(answers)
    session = await stand.gateway.open()
    history = [{"role": "system", "content": "You are an assistant."}]

    async def ask(*new: dict[str, object]) -> str:
        history.extend(new)
        reply = await stand.post(session, chat(*history))
        assert reply.status == 200
        message = dict(reply.message)
        if not repeat_thinking:
            message.pop("reasoning_content", None)
            message.pop("reasoning", None)
        history.append(message)
        return str(message["tool_calls"][0]["id"]) if message.get("tool_calls") else ""

    call = await ask(user("What is here?"))
    await ask(result(call, "(nothing)"))
    await ask(user("Look again."))
    await ask(user("Thank you."))
    return await stand.gateway.finish(session.id)


def reread(stand: Bench) -> dict[str, int]:
    found = re.findall(r'polar_reread_tokens_total\{cause="(\w+)"\} (\d+)', stand.gateway.metrics.text().decode())
    return {cause: int(count) for cause, count in found}


async def run(
    engine: FakeEngine, directory: Path, history: History, *, repeat_thinking: bool = True
) -> tuple[Forest, dict[str, int]]:
    fields = {"history": history, "thinking": True}
    async with bench(engine, directory, engine_fields=fields) as stand:
        forest = await converse(stand, repeat_thinking=repeat_thinking)
        sampled = [turn.sampled.tolist() for turn in forest.turns]
        assert sampled == [served.sampled for served in engine.served]
        return forest, reread(stand)


@pytest.mark.parametrize("repeat_thinking", [True, False])
async def test_keep_is_one_chain(engine: FakeEngine, tmp_path: Path, repeat_thinking: bool) -> None:
    forest, price = await run(engine, tmp_path, "keep", repeat_thinking=repeat_thinking)
    assert [turn.edge for turn in forest.turns] == [Edge.ROOT, *[Edge.CONTINUE] * 3]
    assert price == {}
    assert "I list it." in engine.decoded(engine.served[3].context)
    built = build(forest)
    (trace,) = built.traces
    assert built.trained_tokens == sum(len(turn.sampled) for turn in forest.turns)
    assert not built.dropped
    assert len(trace) == forest.turns[3].length


@pytest.mark.parametrize("repeat_thinking", [True, False])
async def test_strip_forks_at_each_question_and_says_what_it_costs(
    engine: FakeEngine, tmp_path: Path, repeat_thinking: bool
) -> None:
    forest, price = await run(engine, tmp_path, "strip", repeat_thinking=repeat_thinking)
    turns = forest.turns
    assert [turn.edge for turn in turns] == [Edge.ROOT, Edge.CONTINUE, Edge.ROOT, Edge.ROOT]
    assert [turn.cause for turn in turns] == [None, None, Cause.THINKING_STRIPPED, Cause.THINKING_STRIPPED]
    assert [turn.parent for turn in turns] == [None, 0, 1, 2]
    assert "I list it." in engine.decoded(engine.served[1].context)  # within the question it stays
    for served in engine.served[2:]:
        assert "I list it." not in engine.decoded(served.context)
        assert "There is nothing." in engine.decoded(served.context)
    assert price == {"thinking_stripped": len(turns[2].delta) + len(turns[3].delta)}
    assert 0 < turns[2].shared < turns[1].length
    built = build(forest)
    assert len(built.traces) == 3
    assert built.trained_tokens == sum(len(turn.sampled) for turn in turns)  # nothing is lost, it is read more often
    assert sum(map(len, built.traces)) > turns[3].length


async def test_without_thinking_the_policies_are_the_same(engine: FakeEngine, tmp_path: Path) -> None:
    contexts = []
    for history in ("keep", "strip"):
        engine.served.clear()
        async with bench(engine, tmp_path / history, engine_fields={"history": history, "thinking": False}) as stand:
            answers = iter([bash("ls"), "Nothing.", "Still nothing.", "Goodbye."])
            stand.engine.script = lambda _, answers=answers: next(answers)
            session = await stand.gateway.open()
            asked = [user("What is here?")]
            for word in ("one", "two", "three"):
                reply = await stand.post(session, chat(*asked))
                calls = reply.message.get("tool_calls") or ()
                asked += [reply.message, *(result(call["id"], "(nothing)") for call in calls), user(word)]
            forest = await stand.gateway.finish(session.id)
            assert [turn.edge for turn in forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
        contexts.append([served.context for served in engine.served])
    assert contexts[0] == contexts[1]


# The certificate


async def test_operators_can_ask_for_the_certificate(
    engine: FakeEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="nemo_gym_polar.gateway.gateway"):
        async with (
            bench(engine, tmp_path, engine_fields={"history": "keep", "thinking": True}) as stand,
            stand.client.get(f"{stand.server.url}/certificate") as reply,
        ):
            assert reply.status == 200
            certificate = await reply.json()
    assert (certificate["renderer"], certificate["history"]) == ("qwen3.5", "keep")
    assert {step["verdict"] for step in certificate["steps"]} <= {"stable", "kept", "forks"}
    (record,) = [record for record in caplog.records if record.message.startswith("certificate {")]
    assert certificate["tokenizer"] in record.message


async def test_an_engine_that_renders_has_none(engine: FakeEngine, tmp_path: Path) -> None:
    async with (
        bench(engine, tmp_path, mode="chat") as stand,
        stand.client.get(f"{stand.server.url}/certificate") as reply,
    ):
        assert reply.status == 404
        assert "engine.mode=chat" in (await reply.json())["detail"]
