# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Who may call what, and how a wrong call is refused: always in the provider's shape, never with a generation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.gateways import Bench, chat, user


async def test_a_wrong_key_and_an_unknown_session_look_alike(stand: Bench) -> None:
    session = await stand.gateway.open("known")
    wrong = await stand.post(session, chat(user("hi")), key="polar-wrong")
    session.path = "/s/unknown"
    unknown = await stand.post(session, chat(user("hi")))
    assert wrong.status == unknown.status == 401
    assert wrong.body == unknown.body
    assert wrong.error["code"] == "invalid_api_key"
    assert stand.engine.served == []


async def test_no_key_is_refused(stand: Bench) -> None:
    session = await stand.gateway.open()
    async with stand.client.post(stand.server.url + session.path + "/v1/chat/completions", data=b"{}") as response:
        assert response.status == 401
        assert (await response.json())["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("name", ["authorization", "Authorization", "x-api-key", "x-goog-api-key"])
async def test_the_key_alone_names_the_session(stand: Bench, name: str) -> None:
    session = await stand.gateway.open()
    value = f"Bearer {session.secret}" if name.lower() == "authorization" else session.secret
    async with stand.client.post(
        stand.server.url + "/v1/chat/completions", json=chat(user("hi")), headers={name: value}
    ) as response:
        assert response.status == 200
    assert len(session.forest) == 1


async def test_one_session_s_key_does_not_open_another(stand: Bench) -> None:
    first, second = await stand.gateway.open(), await stand.gateway.open()
    assert (await stand.post(first, chat(user("hi")), key=second.secret)).status == 401


@pytest.mark.parametrize("path", ["/v1/responses/x/y", "/v1/embeddings", "/", "", "/v1/chat/completions/", "/x/../v1"])
async def test_an_unknown_path_is_404_and_never_a_generation(stand: Bench, path: str) -> None:
    session = await stand.gateway.open()
    reply = await stand.post(session, chat(user("hi")), path=path)
    assert reply.status == 404
    assert reply.error["message"].startswith("Invalid URL (POST /")
    assert stand.engine.served == []


async def test_a_wrong_method_is_405(stand: Bench) -> None:
    session = await stand.gateway.open()
    headers = {"authorization": f"Bearer {session.secret}"}
    url = stand.server.url + session.path
    async with stand.client.get(url + "/v1/chat/completions", headers=headers) as response:
        assert response.status == 405
        assert "use POST" in (await response.json())["error"]["message"]
    async with stand.client.post(url + "/v1/models", headers=headers) as response:
        assert response.status == 405


async def test_a_websocket_is_told_to_upgrade_itself(stand: Bench) -> None:
    session = await stand.gateway.open()
    headers = {
        "authorization": f"Bearer {session.secret}",
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    async with stand.client.get(stand.server.url + session.path + "/v1/responses", headers=headers) as response:
        assert response.status == 426


async def test_models_are_listed(stand: Bench) -> None:
    session = await stand.gateway.open()
    headers = {"authorization": f"Bearer {session.secret}"}
    url = stand.server.url + session.path + "/v1/models"
    async with stand.client.get(url, headers=headers) as response:
        listed: dict[str, Any] = await response.json()
    assert [model["id"] for model in listed["data"]] == ["polar-policy"]
    async with stand.client.get(url + "/any/name", headers=headers) as response:
        assert (await response.json())["id"] == "any/name"
    async with stand.client.head(url, headers=headers) as response:
        assert response.status == 200


async def test_a_large_body_is_413(stand: Bench) -> None:
    limit = stand.gateway.settings.max_body_bytes
    session = await stand.gateway.open()
    headers = {"authorization": f"Bearer {session.secret}", "content-length": str(limit + 1)}
    url = stand.server.url + session.path + "/v1/chat/completions"
    async with stand.client.post(url, headers=headers, data=_endless()) as response:
        assert response.status == 413
        assert str(limit) in (await response.json())["error"]["message"]


async def _endless() -> Any:
    yield b"{"


async def test_a_compressed_body_is_refused(stand: Bench) -> None:
    session = await stand.gateway.open()
    headers = {"authorization": f"Bearer {session.secret}", "content-encoding": "gzip"}
    url = stand.server.url + session.path + "/v1/chat/completions"
    async with stand.client.post(url, headers=headers, data=b"x") as response:
        assert response.status == 415


async def test_a_finished_session_is_unknown(stand: Bench) -> None:
    session = await stand.gateway.open()
    assert (await stand.post(session, chat(user("hi")))).status == 200
    forest = await stand.gateway.finish(session.id)
    assert len(forest) == 1
    assert (await stand.post(session, chat(user("hi")))).status == 401
    assert len(forest) == 1


async def test_metrics(stand: Bench) -> None:
    session = await stand.gateway.open()
    await stand.post(session, chat(user("hi")))
    async with stand.client.get(stand.server.url + "/metrics") as response:
        text = await response.text()
    assert 'polar_calls_total{dialect="chat",status="200"} 1.0' in text
    assert 'polar_turns_total{cause="",edge="root"} 1.0' in text


async def test_ids_that_are_no_file_names_are_refused(stand: Bench) -> None:
    for bad in ("../x", "a/b", ".hidden", "x" * 200, "ä"):
        with pytest.raises(ValueError, match="session id"):
            await stand.gateway.open(bad)
    await stand.gateway.open("twice")
    with pytest.raises(ValueError, match="open already"):
        await stand.gateway.open("twice")
