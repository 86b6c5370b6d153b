# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Spans: one for a session, one for each of its calls, in the words of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from nemo_gym_polar.engines.factory import make_engine
from nemo_gym_polar.gateway import Gateway, GatewaySettings, serve
from nemo_gym_polar.gateway.tracing import Tracing
from tests.support.dialect_calls import Ask, asks
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import Bench, bench, chat, engine_settings, user


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
async def traced(engine: FakeEngine, spans: InMemorySpanExporter, tmp_path: Path) -> AsyncIterator[Bench]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    settings = GatewaySettings(journals=tmp_path / "j")
    async with (
        Gateway(make_engine(engine_settings(engine)), settings, Tracing(provider)) as gateway,
        serve(gateway) as server,
        aiohttp.ClientSession() as client,
    ):
        yield Bench(engine, gateway, server, client, tmp_path / "j")


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


async def test_a_session_and_its_calls(traced: Bench, spans: InMemorySpanExporter) -> None:
    session = await traced.gateway.open("mine", metadata={"task_id": "t-1"}, max_turns=2)
    traced.gateway.resume("4")
    first = await traced.post(session, chat(user("a secret plan"), max_tokens=50))
    await traced.post(session, chat(user("a secret plan"), first.message, user("go on")))
    assert (await traced.post(session, chat(user("more")))).status == 400
    await traced.gateway.finish("mine")
    one, two, refused, whole = spans.get_finished_spans()
    assert one.context is not None and whole.context is not None
    assert [span.name for span in (one, two, refused)] == ["chat m"] * 3
    assert {span.parent and span.parent.span_id for span in (one, two, refused)} == {whole.context.span_id}
    assert one.kind is SpanKind.CLIENT
    usage = first.json["usage"]
    assert attributes(one) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "polar",
        "gen_ai.conversation.id": "mine",
        "gen_ai.request.model": "m",
        "gen_ai.request.choice.count": 1,
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 1.0,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.response.id": first.json["id"],
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": usage["prompt_tokens"],
        "gen_ai.usage.output_tokens": usage["completion_tokens"],
        "gen_ai.usage.cache_read.input_tokens": 0,
        "polar.dialect": "chat",
        "polar.stream": False,
        "polar.task_id": "t-1",
        "polar.turn": 0,
        "polar.edge": "root",
        "polar.policy_version": "0",
    }
    assert attributes(two)["polar.edge"] == "continue"
    assert (attributes(refused)["error.type"], refused.status.status_code) == ("budget", StatusCode.ERROR)
    assert whole.name == "invoke_agent"
    assert attributes(whole)["polar.turns"] == 2
    assert attributes(whole)["polar.exhausted"] == "turns"
    said = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "secret plan" not in said
    assert session.secret not in said


@pytest.mark.parametrize("ask", asks(), ids=lambda ask: f"{ask.dialect}-{'stream' if ask.stream else 'whole'}")
async def test_every_dialect(traced: Bench, spans: InMemorySpanExporter, ask: Ask) -> None:
    session = await traced.gateway.open()
    assert (await traced.post(session, ask.body, path=ask.path)).status == 200
    (span,) = spans.get_finished_spans()
    operation = "generate_content" if ask.dialect == "generate_content" else "chat"
    assert (span.name, attributes(span)["polar.dialect"]) == (f"{operation} m", ask.dialect)


async def test_failures_have_their_names(traced: Bench, spans: InMemorySpanExporter) -> None:
    session = await traced.gateway.open(deadline=time.monotonic() + 0.3)
    traced.engine.faults.append("nan")
    await traced.post(session, chat(user("hi")))
    traced.engine.delay = 60
    await traced.post(session, chat(user("ho")))
    assert [attributes(span)["error.type"] for span in spans.get_finished_spans()] == ["not_finite", "budget"]


async def test_spans_are_sent_by_otlp(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, bytes]] = []

    async def take(request: web.Request) -> web.Response:
        taken.append((request.content_type, await request.read()))
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/traces", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        async with bench(engine, tmp_path / "j", tracing=True) as stand:
            session = await stand.gateway.open("mine")
            assert (await stand.post(session, chat(user("hi")))).status == 200
    finally:
        await runner.cleanup()
    assert {kind for kind, _ in taken} == {"application/x-protobuf"}
    sent = b"".join(body for _, body in taken)
    assert b"gen_ai.conversation.id" in sent and b"polar-gateway" in sent and b"invoke_agent" in sent


def test_nothing_of_it_is_imported_when_it_is_off() -> None:
    code = (
        "import sys, nemo_gym_polar.gateway.standalone\n"
        "found = [name for name in sys.modules if name.startswith('opentelemetry.sdk')]\n"
        "sys.exit(f'imported: {found}' if found else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_the_extra_it_is_refused_in_one_line() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk.trace'] = None\n"
        "from nemo_gym_polar.gateway.gateway import _exporting\n"
        "try: _exporting()\n"
        "except ValueError as error: sys.exit(0 if 'nemo-gym-polar[otel]' in str(error) else 1)\n"
        "sys.exit(2)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
