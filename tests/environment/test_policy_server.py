# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""NeMo RL on both sides: its policy server samples, and its walk over a result finds one contiguous chain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import orjson
import pytest

from nemo_gym_polar.environment.host import host_gateway
from nemo_gym_polar.environment.sessions import Sessions
from nemo_gym_polar.environment.settings import ResourcesSettings
from tests.environment.conftest import Desk
from tests.environment.reference_walk import walk
from tests.support.fake_engine import bash
from tests.support.fake_nemo_rl import FakeNeMoRL
from tests.support.gateways import engine_settings, result, user


@pytest.fixture
async def trained(model_directory: Path, tmp_path: Path) -> AsyncIterator[Desk]:
    async with FakeNeMoRL(model_directory, temperature=0.8, top_p=0.95) as trainer:
        engine = engine_settings(trainer, mode="chat", kind="nemo_rl")
        settings = ResourcesSettings(engine=engine, directory=tmp_path, context_tokens=2048)
        async with host_gateway(settings) as host, aiohttp.ClientSession() as client:
            yield Desk(trainer, Sessions(host, settings), client)


async def test_what_its_row_stamps_is_what_its_server_enforces(trained: Desk) -> None:
    """The harness asks for other values; the answers are spelled as no template would, and still make one chain."""
    trained.engine.script = lambda text: "Done." if text.count("<tool_response>") > 1 else bash("\n  ls  ")
    at = await trained.open(temperature=0.8, top_p=0.95, max_output_tokens=64)
    history = [user("Look twice.")]
    for _ in range(3):
        message = await trained.call(at, history, temperature=0.1, top_p=0.5, max_tokens=500)
        assert message is not None
        history += [message, *[result(call["id"], "a b") for call in message.get("tool_calls") or []]]
    verified = orjson.loads(orjson.dumps(await trained.verify(at)))
    row = walk(verified)
    last = trained.engine.served[-1]
    assert (row.turns, row.tokens) == (3, last.context + last.sampled)
    sampled = [token for served in trained.engine.served for token in served.sampled]
    assert [token for token, mine in zip(row.tokens, row.mask, strict=True) if mine] == sampled
    assert (verified["mask_sample"], verified["delivered_tokens"]) == (False, len(sampled))


async def test_values_of_nobody_give_no_rollout(trained: Desk) -> None:
    at = await trained.open(temperature=1.0, top_p=1.0)
    assert await trained.call(at, [user("Look.")]) is None
    assert trained.engine.served == []
