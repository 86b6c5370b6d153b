# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The way out: an HTTP client inside reaches the gateway's socket and feels what the gateway does."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.runtimes.inside import forward
from nemo_gym_polar.runtimes.registry import GatewayAddress

CLIENT = """
exec 3<>/dev/tcp/127.0.0.1/8399
printf 'POST %s HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 5\\r\\n\\r\\nhello' "$1" >&3
cat <&3
"""


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the request's own first line, its body and a large rest."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(
        b"HTTP/1.1 200 OK\r\n\r\n" + head.split(b"\r\n")[0] + b" " + await reader.readexactly(5) + b"." * 500_000
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayAddress]:
    server = await asyncio.start_unix_server(echo, tmp_path / "gateway.sock")
    async with server:
        yield GatewayAddress("", tmp_path / "gateway.sock")


async def test_a_client_inside_reaches_the_gateway(started: Any, gateway: GatewayAddress) -> None:
    sandbox = await started("bubblewrap", gateway)
    ended = await sandbox.run(["bash", "-c", f"{{ {CLIENT} }} | head -c 60", "client", "/s/1"], timeout=10)
    assert b"POST /s/1 HTTP/1.1 hello...." in ended.stdout


async def test_many_connections_at_once(started: Any, gateway: GatewayAddress) -> None:
    sandbox = await started("bubblewrap", gateway)
    loop = f"one() {{ {CLIENT} }}; for i in $(seq 30); do one /$i | wc -c & done; wait"
    ended = await sandbox.run(["bash", "-c", loop], timeout=20)
    assert len(ended.stdout.split()) == 30
    assert {int(size) // 1000 for size in ended.stdout.split()} == {500}


def pair() -> tuple[socket.socket, socket.socket]:
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    accepted, _ = listener.accept()
    listener.close()
    return client, accepted


def test_a_refused_upstream_resets_the_client(tmp_path: Path) -> None:
    client, accepted = pair()
    forward.join(accepted, str(tmp_path / "nobody.sock"))
    with client, pytest.raises(ConnectionResetError):
        client.recv(1)


def test_an_upstream_reset_resets_the_client(tmp_path: Path) -> None:
    client, accepted = pair()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "gateway.sock"))
        listener.listen()
        thread = threading.Thread(target=forward.join, args=(accepted, str(tmp_path / "gateway.sock")))
        thread.start()
        upstream, _ = listener.accept()
        client.sendall(b"half a request")
        upstream.recv(4)  # closing with unread data is a reset on a Unix socket
        upstream.close()
        thread.join(5)
    with client, pytest.raises(ConnectionResetError):
        client.recv(1)


def test_a_client_that_goes_away_is_felt_upstream(tmp_path: Path) -> None:
    client, accepted = pair()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "gateway.sock"))
        listener.listen()
        thread = threading.Thread(target=forward.join, args=(accepted, str(tmp_path / "gateway.sock")))
        thread.start()
        upstream, _ = listener.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        thread.join(5)
        with upstream:
            assert upstream.recv(1) == b""


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "whole"),
    [
        ([HEAD, b"4\r\nhalf\r\n"], False),
        ([HEAD], False),
        ([HEAD, b"4\r\nhalf\r\n", b"0\r\n", b"\r\n"], True),
        ([HEAD + b"4\r\nhalf\r\n0\r\n\r\n"], True),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfull"], True),
        ([], True),
    ],
)
def test_an_upstream_that_ends_within_an_answer_resets_the_client(
    tmp_path: Path, sent: list[bytes], whole: bool
) -> None:
    client, accepted = pair()
    with socket.socket(socket.AF_UNIX) as listener, client:
        listener.bind(str(tmp_path / "gateway.sock"))
        listener.listen()
        thread = threading.Thread(target=forward.join, args=(accepted, str(tmp_path / "gateway.sock")))
        thread.start()
        upstream, _ = listener.accept()
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        upstream.recv(100)
        for data in sent:
            upstream.sendall(data)
            assert client.recv(len(data), socket.MSG_WAITALL) == data
        upstream.close()
        thread.join(5)
        if whole:
            assert client.recv(1) == b""
        else:
            with pytest.raises(ConnectionResetError):
                client.recv(1)
