# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Token truth: what the journal says is what the engine read and sampled, call after call."""

from __future__ import annotations

import numpy as np

from nemo_gym_polar.forest.journal import read_journal
from nemo_gym_polar.forest.turn import Edge
from tests.support.fake_engine import bash
from tests.support.gateways import Bench, chat, result, user


async def test_a_session_is_recorded_as_it_was_sampled(stand: Bench) -> None:
    answers = iter([bash("ls"), "I looked.\n" + bash("touch a") + "\n" + bash("touch b"), "Done."])
    stand.engine.script = lambda _: next(answers)
    session = await stand.gateway.open()
    history = [{"role": "system", "content": "You are an assistant."}, user("Create hello.txt")]
    for _ in range(3):
        reply = await stand.post(session, chat(*history))
        assert reply.status == 200
        history.append(reply.message)
        history.extend(result(call["id"], "(no output)") for call in reply.message.get("tool_calls", []))
    forest = await stand.gateway.finish(session.id)

    assert [turn.edge for turn in forest.turns] == [Edge.ROOT, Edge.CONTINUE, Edge.CONTINUE]
    for turn, served in zip(forest.turns, stand.engine.served, strict=True):
        assert forest.context(turn.index).tolist() == served.context
        assert turn.sampled.tolist() == served.sampled
        assert np.array_equal(turn.logprobs, np.array(served.logprobs, np.float32))
    assert len(history[4]["tool_calls"]) == 2
    kept = read_journal(stand.journals / f"{session.id}.journal")
    assert [turn.digest for turn in kept.turns] == [turn.digest for turn in forest.turns]
