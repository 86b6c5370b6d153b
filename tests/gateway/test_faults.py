# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Every way an engine can fail is loud: a status for the harness, a counter for the operator, no trained token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.turn import Status
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import Bench, bench, chat, user

FAULTS = [
    ("no_ids", 502, "no_ids", "token_ids"),
    ("null_ids", 502, "no_ids", "token_ids"),
    ("no_logprobs", 502, "no_logprobs", "log-probabilities"),
    ("nan", 502, "not_finite", "log-probability 0 is None"),
    ("positive", 502, "misaligned", "not above 0"),
    ("misaligned", 502, "misaligned", "token_ids but"),
    ("other_ids", 502, "misaligned", "other tokens"),
    ("bad_versions", 502, "misaligned", "weight_versions"),
    ("abort", 503, "aborted", "aborted"),
    ("html", 502, "malformed", "not JSON"),
    ("500", 502, "status", "CUDA error"),
    ("400", 400, "status", "temperature"),
    ("overflow", 400, "overflow", "maximum context length"),
    ("429", 429, "overloaded", "slow down"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fault", "status", "counted", "said"), FAULTS)
async def test_a_fault_is_an_error_with_its_name(
    stand: Bench, fault: Any, status: int, counted: str, said: str, stream: bool
) -> None:
    stand.engine.faults.append(fault)
    session = await stand.gateway.open()
    reply = await stand.post(session, chat(user("hi"), stream=stream))
    assert reply.status == status
    assert said in reply.error["message"]
    assert f'polar_engine_faults_total{{fault="{counted}"}} 1.0' in stand.gateway.metrics.text().decode()
    assert [turn.status for turn in session.forest.turns] == [Status.FAILED]
    assert (await stand.post(session, chat(user("hi")))).status == 200
    forest = await stand.gateway.finish(session.id)
    assert build(forest).trained_tokens == len(stand.engine.served[-1].sampled)


async def test_context_overflow_has_the_provider_s_code(stand: Bench) -> None:
    session = await stand.gateway.open()
    reply = await stand.post(session, chat(user("word " * 5000)))
    assert reply.status == 400
    assert reply.error["code"] == "context_length_exceeded"
    assert "maximum context length is 4096 tokens" in reply.error["message"]
    assert stand.engine.served == []


async def test_a_connection_that_breaks_is_tried_once_more(stand: Bench) -> None:
    stand.engine.faults.append("die")
    session = await stand.gateway.open()
    assert (await stand.post(session, chat(user("hi")))).status == 200
    assert len(session.forest) == 1


async def test_a_dead_engine_is_named(stand: Bench) -> None:
    stand.engine.faults.extend(["die", "die"])
    session = await stand.gateway.open()
    reply = await stand.post(session, chat(user("hi")))
    assert reply.status == 503
    assert stand.engine.url in reply.error["message"]


async def test_a_session_moves_from_a_dead_replica_and_stays(engine: FakeEngine, tmp_path: Path) -> None:
    async with (
        FakeEngine(engine.tokenizer_directory) as second,
        bench(engine, tmp_path / "j", more_urls=(second.url,)) as stand,
    ):
        sessions = [await stand.gateway.open() for _ in range(4)]
        for session in sessions:
            assert (await stand.post(session, chat(user("hi")))).status == 200
        assert (len(engine.served), len(second.served)) == (2, 2)
        await engine.__aexit__(None, None, None)
        for session in sessions:
            assert (await stand.post(session, chat(user("again")))).status == 200
        assert len(second.served) == 6


async def test_without_generate_completions_are_asked(engine: FakeEngine, tmp_path: Path) -> None:
    engine.generate = False
    async with bench(engine, tmp_path / "j") as stand:
        session = await stand.gateway.open()
        assert (await stand.post(session, chat(user("hi")))).status == 200
        assert (await stand.post(session, chat(user("ho")))).status == 200
    assert [served.path for served in engine.served] == ["/v1/completions"] * 2
    assert session.forest[0].sampled.tolist() == engine.served[0].sampled
    assert session.forest[0].versions == ()


async def test_an_image_needs_chat_mode(stand: Bench) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    session = await stand.gateway.open()
    reply = await stand.post(session, chat({"role": "user", "content": [image]}))
    assert reply.status == 400
    assert "engine.mode=chat" in reply.error["message"]
