# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway process that is killed, or whose disk fills up, loses no answer that a harness has read."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path
from typing import Any

import aiohttp

from nemo_gym_polar.forest.journal import read_journal, recover
from tests.support.fake_engine import FakeEngine
from tests.support.gateway_process import Running, running, serve_settings
from tests.support.gateways import chat, user


async def test_a_killed_gateway_loses_no_answer(engine: FakeEngine, tmp_path: Path) -> None:
    """SIGKILL under load, at several moments."""
    for round_, seconds in enumerate((0.15, 0.4)):
        directory = tmp_path / str(round_)
        async with running(serve_settings(engine, directory)) as gateway:
            answered = await _hammer_and_kill(gateway, seconds)
        (journal,) = (directory / "journals").glob("*.journal")
        recovered = recover(journal)
        assert recovered.damage is None
        kept = {turn.response_id for turn in recovered.forest.turns}
        assert answered
        assert answered <= kept


async def test_a_full_disk_acknowledges_nothing(engine: FakeEngine, tmp_path: Path) -> None:
    async with running(serve_settings(engine, tmp_path)) as gateway, aiohttp.ClientSession() as client:
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        answered, status, body = 0, 200, {}
        while status == 200 and answered < 500:
            status, body = await _ask(client, gateway, f"question {answered}" * 20)
            answered += status == 200
        assert status == 503
        assert "can't be" in body["error"]["message"]
        assert (await _ask(client, gateway, "and again"))[0] == 503
        (journal,) = (tmp_path / "journals").glob("*.journal")
        assert len(read_journal(journal)) == answered > 0


async def _ask(client: aiohttp.ClientSession, gateway: Running, text: str) -> tuple[int, dict[str, Any]]:
    headers = {"authorization": f"Bearer {gateway.key}"}
    async with client.post(
        gateway.base_url + "/v1/chat/completions", json=chat(user(text)), headers=headers
    ) as response:
        return response.status, await response.json()


async def _hammer_and_kill(gateway: Running, seconds: float) -> set[str]:
    """Ids of the answers that arrived whole."""
    answered: set[str] = set()

    async def ask_on(client: aiohttp.ClientSession, name: int) -> None:
        for number in range(10_000):
            status, body = await _ask(client, gateway, f"{name} asks {number}")
            assert status == 200
            answered.add(body["id"])

    async with aiohttp.ClientSession() as client:
        work = [asyncio.create_task(ask_on(client, name)) for name in range(8)]
        await asyncio.sleep(seconds)
        gateway.process.kill()
        failures = await asyncio.gather(*work, return_exceptions=True)
    assert all(isinstance(failure, aiohttp.ClientError) for failure in failures)
    return answered
