# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The sandbox's only way out: connections to a loopback port go to the gateway's Unix socket.

One thread per connection polls both ends. A broken upstream becomes a TCP reset, because a harness retries that.
"""

import _thread
import select
import socket
import struct

CHUNK = 1 << 16
ABORT = struct.pack("ii", 1, 0)
CHUNKED = b"transfer-encoding: chunked"
LAST_CHUNK = b"0\r\n\r\n"


def listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    return listener


def start(port: int, gateway: str) -> None:
    """Listen at once, so that no command can come too early; serve on threads that die with the process."""
    _thread.start_new_thread(accept, (listen(port), gateway))


def accept(listener: socket.socket, gateway: str) -> None:
    while True:
        client, _ = listener.accept()
        try:
            _thread.start_new_thread(join, (client, gateway))
        except RuntimeError:  # out of threads: refuse this one, keep the others
            reset(client)


def join(client: socket.socket, gateway: str) -> None:
    upstream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        upstream.connect(gateway)
        relay(client, upstream)
    except OSError:
        reset(client)
    finally:
        client.close()
        upstream.close()


class Answer:
    """The gateway's answer to what was last asked. One that comes in chunks is whole when the empty one has come."""

    def __init__(self) -> None:
        self.tail = b""
        self.chunked: bool | None = None

    def add(self, data: bytes) -> None:
        if self.chunked is None:
            self.chunked = CHUNKED in data.lower()
        self.tail = (self.tail + data[-len(LAST_CHUNK) :])[-len(LAST_CHUNK) :]

    @property
    def is_cut(self) -> bool:
        return bool(self.chunked) and self.tail != LAST_CHUNK


def relay(client: socket.socket, upstream: socket.socket) -> None:
    """Copy both ways until the upstream ends. OSError if an end breaks, or the upstream ends within an answer."""
    answer = Answer()
    other = {client.fileno(): (client, upstream), upstream.fileno(): (upstream, client)}
    poll = select.poll()
    for descriptor in other:
        poll.register(descriptor, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            source, sink = other[descriptor]
            data = source.recv(CHUNK)
            if source is client:
                answer = Answer()
            elif data:
                answer.add(data)
            elif answer.is_cut:
                raise ConnectionResetError
            if data:
                sink.sendall(data)
                continue
            sink.shutdown(socket.SHUT_WR)
            if source is upstream:
                return
            poll.unregister(descriptor)


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    client.close()
