# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A connection that an application can reset, and that tells when its client is gone.

A broken stream must not end like a whole one: every harness asks again after a TCP reset, and some take a clean end for
an answer. ASGI has no word for this, so the connection puts its own into the scope. Nor has it one for being told when
the client leaves: an application would have to wait for that in a task of its own, for every request.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

from starlette.types import Receive, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_RESET = "polar.reset"
_GONE = "polar.gone"
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_NO_LINGER = struct.pack("ii", 1, 0)


class AnswerBrokenError(Exception):
    """Ends an answer in the middle where the server can't reset: the server drops the connection on any exception."""


class HeadTooLargeError(Exception):
    """More header bytes than a request may have."""


class ResettableProtocol(HttpToolsProtocol):
    """uvicorn's HTTP connection with `reset` and `when_gone` among the scope's extensions, a bound for headers, and no
    access log."""

    def __init__(self, *args: Any, max_header_bytes: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False
        self._max_head = max_header_bytes
        self._head: int | None = 0
        """Bytes of a request whose headers have not ended yet; None after their end."""
        self._gone: Callable[[], object] | None = None
        self._lost = False

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > self._max_head:
                self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        scope = cast("dict[str, Any]", self.scope)
        scope["extensions"] = {_RESET: self.reset, _GONE: self.when_gone}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._lost = True
        if self._gone is not None:
            self._gone()

    def when_gone(self, call: Callable[[], object] | None) -> None:
        """Have `call` called when the client leaves, at once if it has left; None: nothing any more."""
        self._gone = call
        if self._lost and call is not None:
            call()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum([len(name) + len(value) for name, value in self.headers])
        if size > self._max_head:
            self._head = size
            raise HeadTooLargeError
        self._head = None
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Of what is no HTTP request; here also of one whose headers don't end, or are too large."""
        if self._head is None or self._head <= self._max_head:
            super().send_400_response(msg)
        elif not self.transport.is_closing():
            self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()

    def reset(self) -> None:
        """Drop the connection at once; over TCP the peer sees a reset.

        A Unix socket has none. There the last chunk is missing, of which a sandbox's way out (`runtimes/inside/
        forward.py`) makes a reset.
        """
        raw = self.transport.get_extra_info("socket")
        if raw is not None and raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.cycle.disconnected = True
        self.transport.abort()

    def _unsupported_upgrade_warning(self) -> None:
        """The gateway answers upgrades itself, with 426."""


def reset(scope: Scope) -> None:
    """Break the answer that is being sent."""
    call: Callable[[], None] | None = scope.get("extensions", {}).get(_RESET)
    if call is None:
        raise AnswerBrokenError("the engine failed after the headers were sent")
    call()


def watch(scope: Scope, receive: Receive, gone: Callable[[], object]) -> Callable[[], object]:
    """Have `gone` called if the client leaves, until the returned function is called."""
    when_gone: Callable[[Callable[[], object] | None], None] | None = scope.get("extensions", {}).get(_GONE)
    if when_gone is not None:
        when_gone(gone)
        return lambda: when_gone(None)
    waiting = asyncio.create_task(_disconnected(receive))
    waiting.add_done_callback(lambda task: task.cancelled() or gone())
    return waiting.cancel


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
