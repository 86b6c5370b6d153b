# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A bubblewrap sandbox reaches the gateway's socket and nothing else, tried against real listeners on this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.runtimes.bubblewrap import BubblewrapRuntime
from nemo_gym_polar.runtimes.registry import GatewayAddress, make_runtime

TRY = """
import socket, sys
kind, host, port = sys.argv[1:]
try:
    if kind in ("unix", "abstract"):
        peer = socket.socket(socket.AF_UNIX); peer.settimeout(2)
        peer.connect(host if kind == "unix" else chr(0) + host)
    elif kind == "udp":
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); peer.settimeout(2)
        peer.sendto(b"x", (host, int(port)))
    else:
        peer = socket.create_connection((host, int(port)), 2)
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""


class Heard:
    """Listeners on the loopback by TCP (both families), UDP, an abstract and a plain Unix socket; counts who came."""

    def __init__(self) -> None:
        self.count = 0
        self.targets: list[tuple[str, str, int]] = []

    def came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        writer.close()


@pytest.fixture
async def heard(tmp_path: Path) -> AsyncIterator[Heard]:
    made = Heard()
    servers = [await asyncio.start_server(made.came, "127.0.0.1", 0)]
    if socket.has_dualstack_ipv6():
        servers.append(await asyncio.start_server(made.came, "::1", 0))
    made.targets += [("tcp", *server.sockets[0].getsockname()[:2]) for server in servers]
    plain, abstract = str(tmp_path / "other.sock"), f"polar-{tmp_path.name}"
    servers += [await asyncio.start_unix_server(made.came, path) for path in (plain, f"\0{abstract}")]
    made.targets += [("unix", plain, 0), ("abstract", abstract, 0)]
    yield made
    for server in servers:
        server.close()


async def attempt(runtime: Any, kind: str, host: str, port: int) -> str:
    argv = ["python3", "-c", TRY, kind, host, str(port)]
    ended = await runtime.run(argv, timeout=20)
    return str((ended.stdout + ended.stderr).decode().strip())


def own_address() -> str:
    """This machine's address as others know it, without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


async def test_nothing_of_the_host_is_reached(heard: Heard, tmp_path: Path) -> None:
    gateway = tmp_path / "gateway.sock"
    calls: list[int] = []

    def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(1)
        writer.close()

    door = await asyncio.start_unix_server(came, gateway)
    runtime = make_runtime("bubblewrap", GatewayAddress("http://127.0.0.1:9", gateway))
    await runtime.start()
    try:
        for target in heard.targets:
            assert await attempt(runtime, *target) != "reached", target
        port = heard.targets[0][2]
        for host in (own_address(), "10.0.0.1", "192.0.2.1", "169.254.169.254"):
            if host != "127.0.0.1":
                assert await attempt(runtime, "tcp", host, port) != "reached", host
        assert await attempt(runtime, "udp", "192.0.2.1", 53) != "reached"
        assert heard.count == 0
        assert await attempt(runtime, "tcp", "127.0.0.1", 8399) == "reached"
        assert calls == [1]
    finally:
        await runtime.stop()
        door.close()


async def test_the_listeners_can_be_reached_from_here(heard: Heard) -> None:
    """Or the test above could not fail."""
    for kind, host, port in heard.targets:
        path = host if kind == "unix" else f"\0{host}"
        opened = asyncio.open_connection(host, port) if kind == "tcp" else asyncio.open_unix_connection(path)
        reader, writer = await opened
        assert await asyncio.wait_for(reader.read(), 10) == b""  # closed by the listener
        writer.close()
    assert heard.count == len(heard.targets)


async def test_without_a_gateway_not_even_the_port() -> None:
    runtime = BubblewrapRuntime(gateway=None)
    await runtime.start()
    try:
        assert await attempt(runtime, "tcp", "127.0.0.1", 8399) == "ConnectionRefusedError"
    finally:
        await runtime.stop()
