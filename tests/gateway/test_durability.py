# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Durable before seen: whatever a harness has read to its end is in the journal, whatever happens then."""

from __future__ import annotations

import resource

import pytest

from nemo_gym_polar.forest.journal import read_journal, recover
from nemo_gym_polar.forest.turn import Edge, Status
from tests.support.gateways import Bench, chat, user


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_read_is_on_disk(stand: Bench, stream: bool) -> None:
    session = await stand.gateway.open("kept")
    for turns in range(1, 6):
        reply = await stand.post(session, chat(user(f"question {turns}"), stream=stream))
        assert reply.status == 200
        assert len(read_journal(stand.journals / "kept.journal")) == turns


async def test_a_session_goes_on_from_its_journal(stand: Bench) -> None:
    session = await stand.gateway.open("again", metadata={"task": "t"})
    first = await stand.post(session, chat(user("hi")))
    await stand.gateway.finish("again")
    session = await stand.gateway.open("again")
    history = [user("hi"), first.message, user("go on")]
    assert (await stand.post(session, chat(*history))).status == 200
    forest = await stand.gateway.finish("again")
    assert [turn.edge for turn in forest.turns] == [Edge.ROOT, Edge.CONTINUE]
    assert recover(stand.journals / "again.journal").metadata == {"task": "t"}


async def test_in_memory_a_turn_that_is_not_durable_has_failed(stand: Bench) -> None:
    session = await stand.gateway.open()
    assert (await stand.post(session, chat(user("hi")))).status == 200
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
    try:
        assert (await stand.post(session, chat(user("ho")))).status == 503
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [turn.status for turn in session.forest.turns] == [Status.KEPT, Status.FAILED]
