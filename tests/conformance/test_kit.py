# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway passes every case of the kit, in both modes; the kit itself sees what is wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from aiohttp import web
from typer.testing import CliRunner

from nemo_gym_polar.cli.errors import UsageError
from nemo_gym_polar.cli.polar import app
from nemo_gym_polar.conformance import CASES, Case, Subject, run_cases
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import Bench, bench

Mode = Literal["tokens", "chat"]


@pytest.fixture(params=["tokens", "chat"])
async def stand(request: pytest.FixtureRequest, engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Bench]:
    mode: Mode = request.param
    async with bench(engine, tmp_path / "journals", mode=mode) as stand:
        yield stand


async def subject_of(stand: Bench) -> Subject:
    session = await stand.gateway.open()
    return Subject(stand.server.url + session.path, session.secret, "polar-policy")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}: {case.name}")
async def test_the_gateway_conforms(stand: Bench, case: Case) -> None:
    (outcome,) = await asyncio.to_thread(lambda subject: list(run_cases(subject, [case])), await subject_of(stand))
    assert outcome.ok, outcome.detail


@pytest.fixture
async def liar() -> AsyncIterator[Subject]:
    """A server that says «yes» to everything."""

    async def agree(_: web.Request) -> web.Response:
        return web.json_response({"id": "yes", "object": "yes", "choices": [], "output": [], "content": []})

    server = web.Application()
    server.router.add_route("*", "/{path:.*}", agree)
    runner = web.AppRunner(server, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield Subject(f"http://{host}:{port}", "key", "m")
    await runner.cleanup()


async def test_a_server_that_agrees_with_everything_fails(liar: Subject) -> None:
    outcomes = await asyncio.to_thread(lambda: list(run_cases(liar)))
    passed = {(outcome.dialect, outcome.name) for outcome in outcomes if outcome.ok}
    # These ask only that a request is taken.
    assert passed <= {
        *((dialect, "tools") for dialect in ("chat", "responses", "messages")),
        *((dialect, "image") for dialect in ("chat", "responses", "messages", "generate_content")),
        ("chat", "unknown fields"),
        ("chat", "retry"),
        ("messages", "thinking"),
        ("wire", "hello"),
    }


async def test_the_command_prints_a_table(liar: Subject) -> None:
    command = ["conformance", liar.url, "--key", "key", "--dialect", "wire"]
    table = await asyncio.to_thread(CliRunner().invoke, app, command)
    assert table.exit_code == 1
    assert "FAIL  wire" in table.stdout and "1 of 5" in table.stdout
    told = await asyncio.to_thread(CliRunner().invoke, app, [*command, "--json"])
    assert [outcome["name"] for outcome in json.loads(told.stdout) if outcome["ok"]] == ["hello"]


async def test_a_gateway_that_does_not_answer_is_one_line(stand: Bench) -> None:
    session = await stand.gateway.open()
    for url, key, said in (
        ("localhost:1", "key", "does not begin with http"),
        ("http://127.0.0.1:1/s/x", "key", "nothing answers"),
        (stand.server.url + session.path, "wrong", "does not open"),
    ):
        command = ["conformance", url, "--key", key]
        with pytest.raises(UsageError, match=said):
            await asyncio.to_thread(CliRunner().invoke, app, command, catch_exceptions=False)
