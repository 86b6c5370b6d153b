# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What an operator sees: whether the gateway is ready, what it counts, and how it takes its leave."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from nemo_gym_polar.gateway import DrainingError, Gateway
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import Bench, bench, chat, user
from tests.support.waiting import until

Sample = tuple[str, tuple[tuple[str, str], ...]]


def samples(gateway: Gateway) -> Mapping[Sample, float]:
    families = text_string_to_metric_families(gateway.metrics.text().decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


async def health(stand: Bench, path: str = "/health") -> tuple[int, Any]:
    async with stand.client.get(stand.server.url + path) as response:
        return response.status, await response.json()


async def test_a_ready_gateway(stand: Bench) -> None:
    session = await stand.gateway.open()
    await stand.post(session, chat(user("hi")))
    assert await health(stand) == (
        200,
        {
            "status": "ok",
            "reasons": [],
            "sessions": 1,
            "calls": 0,
            "paused": False,
            "policy_version": "0",
            "engine_replicas_up": 1,
        },
    )


async def test_why_a_gateway_is_not_ready(stand: Bench) -> None:
    await stand.engine.__aexit__(None, None, None)
    stand.journals.write_text("in the way")
    status, report = await health(stand)
    assert (status, report["status"]) == (503, "unready")
    assert report["reasons"] == ["no engine answers", "the journals can't be written: File exists"]
    assert await health(stand, "/health/live") == (200, {"status": "ok"})


async def test_a_disk_that_is_almost_full(engine: FakeEngine, tmp_path: Path) -> None:
    async with bench(engine, tmp_path / "j", min_free_bytes=1 << 60) as stand:
        status, report = await health(stand)
    assert status == 503
    assert "less than min_free_bytes=1152921504606846976" in report["reasons"][0]


async def test_an_answer_holds_for_a_while(stand: Bench) -> None:
    """However many ask, the engine is not asked more often."""
    assert (await health(stand))[0] == 200
    await stand.engine.__aexit__(None, None, None)
    assert {(await health(stand))[0] for _ in range(20)} == {200}


async def test_a_socket_for_sandboxes_shows_calls_only(engine: FakeEngine, tmp_path: Path) -> None:
    uds = tmp_path / "gateway.sock"
    async with (
        bench(engine, tmp_path / "j", uds=uds) as stand,
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(uds))) as client,
    ):
        session = await stand.gateway.open()
        for path in ("/health", "/metrics", "/certificate"):
            async with client.get(f"http://gateway{path}") as response:
                assert response.status == 401
            assert (await stand.client.get(stand.server.url + path)).status == 200
        headers = {"authorization": f"Bearer {session.secret}"}
        url = f"http://gateway{session.path}/v1/chat/completions"
        async with client.post(url, json=chat(user("hi")), headers=headers) as response:
            assert response.status == 200


async def test_what_calls_leave_in_the_counters(engine: FakeEngine, model_directory: Path, tmp_path: Path) -> None:
    async with (
        FakeEngine(model_directory) as dying,
        bench(engine, tmp_path / "j", more_urls=(dying.url,)) as stand,
    ):
        first, second = await stand.gateway.open(), await stand.gateway.open(max_turns=1)
        for session in (first, second):
            assert (await stand.post(session, chat(user("hi")))).status == 200
        await dying.__aexit__(None, None, None)
        assert (await stand.post(second, chat(user("ho")))).status == 400
        third = await stand.gateway.open()
        assert (await stand.post(third, chat(user("hi")))).status == 200
        stand.gateway.resume("3")
        await stand.gateway.finish(first.id)
        found = samples(stand.gateway)
        durable = sum(path.stat().st_size for path in stand.journals.iterdir())
        served = engine.served + dying.served
    assert found["polar_calls_total", (("dialect", "chat"), ("status", "200"))] == 3
    assert found["polar_calls_total", (("dialect", "chat"), ("status", "400"))] == 1
    assert found["polar_sessions_total", ()] == 3
    assert found["polar_open_sessions", ()] == 2
    assert found["polar_settled_turns_total", (("status", "kept"),)] == 1
    assert found["polar_exhausted_sessions_total", (("budget", "turns"),)] == 1
    assert found["polar_sampled_tokens_total", ()] == sum(len(one.sampled) for one in served)
    assert found["polar_context_tokens_total", ()] == sum(len(one.context) for one in served)
    assert found["polar_engine_seconds_count", ()] == 3
    assert found["polar_call_seconds_count", ()] == 4
    assert found["polar_weight_updates_total", ()] == 1
    assert found["polar_journal_commit_seconds_count", ()] >= 6
    assert found["polar_journal_bytes_total", ()] == durable
    assert found["polar_journal_failures_total", ()] == found["polar_journal_queue_records", ()] == 0
    assert found["polar_engine_replica_up", (("replica", engine.url),)] == 1


async def test_a_replica_that_is_down(engine: FakeEngine, tmp_path: Path) -> None:
    dead = "http://user:password@127.0.0.1:9"
    async with bench(engine, tmp_path / "j", more_urls=(dead,)) as stand:
        for _ in range(3):
            session = await stand.gateway.open()
            assert (await stand.post(session, chat(user("hi")))).status == 200
        found = samples(stand.gateway)
        assert (await health(stand))[1]["engine_replicas_up"] == 1
    down = (("replica", "http://127.0.0.1:9"),)
    assert found["polar_engine_replica_up", down] == 0
    assert found["polar_engine_replica_failures_total", down] == 1


async def test_gauges_follow_a_call_and_a_pause(stand: Bench) -> None:
    stand.engine.delay = 0.2
    session = await stand.gateway.open()
    call = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await until(lambda: stand.engine.running == 1)
    found = samples(stand.gateway)
    assert found["polar_calls_in_flight", ()] == found["polar_generations_in_flight", ()] == 1
    assert found["polar_weights_paused", ()] == 0
    await stand.gateway.pause(5)
    assert samples(stand.gateway)["polar_weights_paused", ()] == 1
    assert (await call).status == 200
    assert samples(stand.gateway)["polar_calls_in_flight", ()] == 0


# Leaving


async def test_a_drain_lets_calls_end_and_takes_no_more(stand: Bench) -> None:
    stand.engine.delay = 0.3
    session = await stand.gateway.open()
    call = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await until(lambda: stand.engine.running == 1)
    draining = asyncio.create_task(stand.gateway.drain(5))
    await until(lambda: stand.gateway.draining)
    refused = await stand.post(session, chat(user("ho")))
    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    with pytest.raises(DrainingError, match="takes no new sessions"):
        await stand.gateway.open()
    assert (await health(stand))[1]["reasons"] == ["the gateway is shutting down"]
    assert await draining
    assert (await call).status == 200


async def test_a_drain_has_a_bound(stand: Bench) -> None:
    stand.engine.delay = 60
    session = await stand.gateway.open()
    call = asyncio.create_task(stand.post(session, chat(user("hi"))))
    await until(lambda: stand.engine.running == 1)
    assert not await stand.gateway.drain(0.05)
    stand.gateway.cut_calls()
    assert (await call).status == 503
    assert samples(stand.gateway)["polar_aborted_calls_total", (("cause", "shutdown"),)] == 1


async def test_every_counter_is_explained(stand: Bench) -> None:
    page = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")
    names = {family.name for family in stand.gateway.metrics.registry.collect() if family.name.startswith("polar_")}
    assert len(names) > 25
    assert not [name for name in names if f"`{name}`" not in page and f"`{name}_total`" not in page]
