# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Who gets in, what a session can see of others, and where no secret may turn up."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from nemo_gym_polar.engines.factory import EngineSettings
from nemo_gym_polar.engines.helpers import HelperSettings
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.gateway import GatewaySettings, Session, serve
from nemo_gym_polar.gateway.app import make_app
from nemo_gym_polar.gateway.endpoint import CallEndpoint
from nemo_gym_polar.gateway.logs import JsonLines, TextLines
from nemo_gym_polar.gateway.management import make_router
from nemo_gym_polar.gateway.rate import Rate
from nemo_gym_polar.gateway.standalone import ServeSettings
from nemo_gym_polar.gateway.updates import update_router
from tests.support.dialect_calls import Ask, asks
from tests.support.fake_engine import FakeEngine
from tests.support.fake_helper import FakeHelper
from tests.support.gateways import Bench, bench, chat, result, user

lives = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
every_ask = pytest.mark.parametrize(
    "ask", asks(), ids=lambda ask: f"{ask.dialect}-{'stream' if ask.stream else 'whole'}"
)


# Who gets in


@every_ask
async def test_unknown_and_finished_secrets_are_401_in_every_dialect(stand: Bench, ask: Ask) -> None:
    session = await stand.gateway.open()
    unknown = await stand.post(session, ask.body, path=ask.path, key="polar-unknown")
    await stand.gateway.finish(session.id)
    finished = await stand.post(session, ask.body, path=ask.path)
    assert unknown.status == finished.status == 401
    for reply in (unknown, finished):
        assert "Incorrect API key" in reply.error["message"]
        assert session.secret.encode() not in reply.body
        assert b"polar-unknown" not in reply.body
    assert stand.engine.served == []


keys = st.none() | st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1"))


@given(key=keys, name=st.sampled_from([b"authorization", b"x-api-key", b"x-goog-api-key", b"cookie"]), at=st.booleans())
@settings(max_examples=300, suppress_health_check=lives)
async def test_only_the_whole_secret_opens_a_session(stand: Bench, key: str | None, name: bytes, at: bool) -> None:
    """Cuts, cases, paddings and other bytes: whatever is not the secret is 401, and nothing is generated."""
    session = await stand.gateway.open()
    given_key = key if key is not None else ""
    assume(given_key.strip() != session.secret)
    value = (b"Bearer " if name == b"authorization" else b"") + given_key.encode("utf-8", "replace")
    status, body = await knock(stand, session.path if at else "", [(name, value)] if key is not None else [])
    assert status == 401
    assert stand.engine.served == []
    assert session.secret.encode() not in body


@given(st.data())
@settings(max_examples=150, suppress_health_check=lives)
async def test_no_change_of_a_secret_opens_a_session(stand: Bench, data: st.DataObject) -> None:
    session = await stand.gateway.open()
    at = data.draw(st.integers(0, len(session.secret) - 1))
    change = data.draw(st.sampled_from(["drop", "double", "case", "other", "cut", "space"]))
    before, one, after = session.secret[:at], session.secret[at], session.secret[at + 1 :]
    changed = {
        "drop": before + after,
        "double": before + one * 2 + after,
        "case": before + one.swapcase() + after,
        "other": before + ("x" if one != "x" else "y") + after,
        "cut": before,
        "space": before + " " + one + after,
    }[change]
    assume(changed.strip() != session.secret)
    assert stand.gateway.locate(session.id, changed) is None
    assert stand.gateway.locate(None, changed) is None
    status, _ = await knock(stand, session.path, [(b"x-api-key", changed.encode())])
    assert status == 401


@given(st.text(max_size=40))
@settings(max_examples=150, suppress_health_check=lives)
async def test_no_other_id_is_opened_by_a_secret(stand: Bench, other: str) -> None:
    session = await stand.gateway.open()
    assume(other != session.id)
    assert stand.gateway.locate(other, session.secret) is None


async def knock(stand: Bench, prefix: str, headers: list[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    """A call straight into the application, with bytes that no client would send."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": orjson.dumps(chat(user("hi"))), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    path = prefix + "/v1/chat/completions"
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    await CallEndpoint(stand.gateway)(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


# What a session sees of others


@pytest.fixture
async def two(stand: Bench) -> tuple[Session, Session, str]:
    """Two sessions, and the id of an answer that the first one keeps."""
    first, second = await stand.gateway.open(), await stand.gateway.open()
    kept = await stand.post(first, {"model": "m", "input": "a secret plan", "store": True}, path="/v1/responses")
    return first, second, kept.json["id"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_stored_answer_is_of_its_session_only(
    stand: Bench, two: tuple[Session, Session, str], method: str
) -> None:
    first, second, kept = two
    for prefix in (second.path, ""):
        theirs = await ask_for(stand, method, f"{prefix}/v1/responses/{kept}", second)
        unknown = await ask_for(stand, method, f"{prefix}/v1/responses/{kept[:-1]}x", second)
        assert theirs[0] == unknown[0] == 404
        assert theirs[1].replace(kept, "") == unknown[1].replace(f"{kept[:-1]}x", "")
    crossed = await ask_for(stand, method, f"{first.path}/v1/responses/{kept}", second)
    assert crossed[0] == 401
    assert (await ask_for(stand, "GET", f"{first.path}/v1/responses/{kept}", first))[0] == 200


async def test_a_conversation_does_not_go_on_from_another_session_s_answer(
    stand: Bench, two: tuple[Session, Session, str]
) -> None:
    _, second, kept = two
    asked = {"model": "m", "input": "go on", "previous_response_id": kept}
    refused = await stand.post(second, asked, path="/v1/responses")
    assert (refused.status, refused.error["param"]) == (400, "previous_response_id")
    assert len(stand.engine.served) == 1


async def test_a_call_id_of_another_session_is_no_way_in(stand: Bench) -> None:
    stand.engine.script = lambda text: (
        "Done."
        if "<tool_response>" in text
        else ("<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>")
    )
    first, second = await stand.gateway.open(), await stand.gateway.open()
    called = (await stand.post(first, chat(user("look")))).message
    quoted = chat(user("look"), called, result(called["tool_calls"][0]["id"], "a b"))
    assert (await stand.post(second, quoted)).status == 200
    (turn,) = second.forest.turns
    assert (turn.edge, turn.parent) == (Edge.ROOT, None)
    assert len(first.forest) == 1


async def ask_for(stand: Bench, method: str, path: str, session: Session) -> tuple[int, str]:
    headers = {"authorization": f"Bearer {session.secret}"}
    async with stand.client.request(method, stand.server.url + path, headers=headers) as response:
        return response.status, await response.text()


# The routes of operators


@pytest.fixture
async def managed(stand: Bench, tmp_path: Path) -> AsyncIterator[str]:
    sessions = make_router(stand.gateway, admin_token="admin-token", public_url=None, traces=tmp_path)
    app = make_app(stand.gateway, sessions, update_router(stand.gateway, admin_token="admin-token"))
    async with serve(stand.gateway, app=app) as server:
        yield server.url


ROUTES = [
    ("POST", "/sessions"), ("GET", "/sessions/mine"), ("DELETE", "/sessions/mine"), ("GET", "/admin/inference/status"),
    ("POST", "/admin/inference/pause"), ("POST", "/admin/inference/resume"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_no_route_of_an_operator_opens_without_the_token(
    stand: Bench, managed: str, method: str, path: str
) -> None:
    session = await stand.gateway.open("mine")
    wrong = ["", "Bearer", "Bearer ", "admin-token", "Basic admin-token", "Bearer admin-toke", "Bearer admin-token2"]
    for value in [*wrong, f"Bearer {session.secret}"]:
        async with stand.client.request(method, managed + path, json={}, headers={"authorization": value}) as response:
            assert response.status == 401, value
            assert "admin-token" not in await response.text()
    assert stand.gateway.session("mine") is session
    assert not stand.gateway.weights.paused


# Sizes and rates


@pytest.mark.parametrize("ends", [True, False], ids=["whole", "endless"])
async def test_headers_that_are_too_large_are_431(engine: FakeEngine, tmp_path: Path, ends: bool) -> None:
    async with bench(engine, tmp_path / "j", max_header_bytes=4096) as stand:
        session = await stand.gateway.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", stand.server.port)
        head = f"GET {session.path}/v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {session.secret}\r\nx-long: "
        writer.write(head.encode() + b"a" * 5000 + (b"\r\n\r\n" if ends else b""))
        said = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        assert said.startswith(b"HTTP/1.1 431 ")
        writer.close()
        # Bodies have their own limit, and other connections go on.
        assert (await stand.post(session, chat(user("word " * 3000)))).status == 200


async def test_a_line_that_never_ends_is_431(engine: FakeEngine, tmp_path: Path) -> None:
    async with bench(engine, tmp_path / "j", max_header_bytes=4096) as stand:
        reader, writer = await asyncio.open_connection("127.0.0.1", stand.server.port)
        for piece in (b"GET /", b"a" * 4000, b"a" * 200):
            writer.write(piece)
            await writer.drain()
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 431 ")
        writer.close()


async def test_a_session_that_calls_too_often_is_told_to_wait(engine: FakeEngine, tmp_path: Path) -> None:
    async with bench(engine, tmp_path / "j", max_calls_per_minute=3) as stand:
        wild, calm = await stand.gateway.open(), await stand.gateway.open()
        replies = [await stand.post(wild, chat(user(str(i)))) for i in range(4)]
        assert [reply.status for reply in replies] == [200, 200, 200, 429]
        assert 1 <= int(replies[-1].headers["Retry-After"]) <= 20
        assert (await stand.post(calm, chat(user("hi")))).status == 200


@given(st.lists(st.floats(0, 100), max_size=200), st.integers(1, 50))
def test_a_rate_lets_no_more_through_than_it_says(gaps: list[float], per_minute: int) -> None:
    rate, now, passed = Rate(per_minute, 0.0), 0.0, 0
    for gap in gaps:
        now += gap
        wait = rate.take(now)
        passed += wait == 0
        if wait:
            now += wait + 1e-6
            assert rate.take(now) == 0
            passed += 1
    assert passed <= per_minute + now * per_minute / 60 + 1e-3


# Where no secret may turn up


def test_no_repr_and_no_error_shows_a_key(tmp_path: Path) -> None:
    key = "sk-very-secret"
    helper = HelperSettings(url="http://x", model="m", api_key=key)
    engine = EngineSettings(urls=("http://x",), model="m", mode="chat", api_key=key, helpers={"fast": helper})
    serving = ServeSettings(engine=engine, gateway=GatewaySettings(journals=tmp_path), traces=tmp_path, admin_token=key)
    for shown in (repr(serving), str(serving), repr(engine), repr(helper)):
        assert key not in shown
    with pytest.raises(ValidationError) as caught:
        ServeSettings.model_validate({"engine": {"api_key": key, "urls": 3}, "admin_token": key, "wrong": key})
    assert key not in str(caught.value)


async def test_a_session_shows_its_id_only(stand: Bench) -> None:
    session = await stand.gateway.open("mine")
    assert repr(session) == "Session('mine')"


async def test_an_engine_s_key_is_never_passed_on(engine: FakeEngine, tmp_path: Path) -> None:
    """Some servers repeat the key that they refuse."""
    async with FakeHelper() as helper:
        key = "sk-of-the-operator"
        fields = {"helpers": {"fast": {"url": helper.url, "model": "m", "api_key": key}}}
        helper.key = "another"
        async with bench(engine, tmp_path / "j", engine_fields=fields) as stand:
            reply = await stand.post(await stand.gateway.open(), {**chat(user("hi")), "model": "fast"})
    assert reply.status == 502
    assert key.encode() not in reply.body
    assert b"[redacted]" in reply.body


@pytest.mark.parametrize("form", [JsonLines, TextLines])
def test_log_lines_hold_no_keys(form: Any) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(form())
    logger = logging.Logger("any")
    logger.addHandler(handler)
    secret = "polar-" + "aB3_" * 8
    logger.warning("GET /v1/models?key=%s with Authorization: Bearer %s", "AIza-123", "tok-456")
    logger.warning("headers %r", {"x-api-key": secret, "authorization": f"Bearer {secret}"})
    try:
        raise ValueError(f"cannot use {secret}")
    except ValueError:
        logger.exception("failed")
    said = written.getvalue()
    assert "cannot use [redacted]" in said
    for shown in (secret, "AIza-123", "tok-456"):
        assert shown not in said


async def test_a_failure_of_ours_is_logged_without_the_key(stand: Bench, caplog: pytest.LogCaptureFixture) -> None:
    session = await stand.gateway.open()
    recorder, session.recorder = session.recorder, None  # type: ignore[assignment]
    url = f"{stand.server.url}{session.path}/v1/chat/completions?key={session.secret}"
    async with stand.client.post(url, json=chat(user("hi"))) as response:
        assert response.status == 500
        assert session.secret not in await response.text()
    session.recorder = recorder
    assert "failed" in caplog.text
    assert session.secret not in caplog.text


async def test_nothing_of_a_secret_is_on_disk_or_at_the_engine(stand: Bench) -> None:
    session = await stand.gateway.open(metadata={"task_id": "t"})
    await stand.post(session, chat(user("hi")))
    await stand.gateway.finish(session.id)
    for path in stand.journals.rglob("*"):
        assert session.secret.encode() not in path.read_bytes()
    (served,) = stand.engine.served
    assert session.secret not in stand.engine.decoded(served.context)
    assert session.secret.encode() not in stand.gateway.metrics.text()
