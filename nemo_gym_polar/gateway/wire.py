# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a request and sending an answer, in ASGI messages."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from nemo_gym_polar.dialects.base import CallError

Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
EVENTS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_HINTS = frozenset(
    {
        b"x-session-id",
        b"x-parent-session-id",
        b"x-openai-subagent",
        b"x-codex-parent-thread-id",
        b"x-codex-window-id",
        b"thread-id",
        b"x-claude-code-agent-id",
        b"x-claude-code-session-id",
    }
)
_MARKS = frozenset({b"anthropic-version", b"x-goog-api-key", b"x-goog-api-client"})


class ClientGoneError(Exception):
    """The harness closed its connection before it had an answer."""


def header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)


def hints(scope: Scope) -> dict[str, str]:
    """The headers by which harnesses tell their agents apart."""
    return {key.decode(): value.decode("latin-1") for key, value in scope["headers"] if key in _HINTS}


def marks(scope: Scope) -> dict[str, str]:
    """The headers by which providers' clients are told apart."""
    return {key.decode(): value.decode("latin-1") for key, value in scope["headers"] if key in _MARKS}


def api_key(scope: Scope) -> str | None:
    """The key, wherever one of the providers wants it."""
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].decode("latin-1").strip())
        if name in (b"x-api-key", b"x-goog-api-key"):
            return str(value.decode("latin-1"))
    keys = parse_qs(scope["query_string"].decode("latin-1")).get("key") if scope["query_string"] else None
    return keys[0] if keys else None


async def body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises `CallError` above `limit` bytes, `ClientGoneError` if it ends early."""
    if (encoding := header(scope, b"content-encoding")) not in (None, b"identity"):
        name = encoding.decode("latin-1") if encoding else ""
        raise CallError("invalid_request", f"Content-Encoding {name!r} is not supported; send plain JSON.", status=415)
    declared = header(scope, b"content-length") or b""
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> CallError:
    return CallError("too_large", f"The request body is larger than {limit} bytes.")


async def respond(send: Send, status: int, content: bytes, headers: Iterable[Header] = (JSON,)) -> None:
    length = (b"content-length", str(len(content)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": content})


async def begin(send: Send, headers: Iterable[Header]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*headers]})


async def write(send: Send, data: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})
