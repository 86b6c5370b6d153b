# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Who may ask: the holder of the control token, as a bearer or in the reference system's own header."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Header, HTTPException
from pydantic import SecretStr
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Guard = Callable[..., Coroutine[Any, Any, None]]


def make_guard(token: SecretStr | None) -> Guard:
    """A dependency that refuses with 401; without a token everybody may ask."""
    expected = token.get_secret_value().encode() if token else b""

    async def authorize(
        authorization: Annotated[str, Header(include_in_schema=False)] = "",
        x_polar_control_token: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> None:
        scheme, _, bearer = authorization.partition(" ")
        shown = x_polar_control_token or (bearer.strip() if scheme.lower() == "bearer" else "")
        if expected and not hmac.compare_digest(shown.encode("utf-8", "replace"), expected):
            why = "the control token is wrong" if shown else "the control token is missing"
            raise HTTPException(
                401, f"{why}: send it as «Authorization: Bearer …»", headers={"WWW-Authenticate": "Bearer"}
            )

    return authorize


class BodyLimit:
    """Refuses bodies of more than `limit` bytes with 413, whether they say their length or not."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self.limit:
            await refuse(send, self.limit)
            return
        await self._count(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen, refused = 0, False

        async def counting() -> Message:
            nonlocal seen, refused
            message = await receive()
            seen += len(message.get("body", b""))
            if seen <= self.limit:
                return message
            if not refused:
                refused = True
                await refuse(send, self.limit)
            return {"type": "http.disconnect"}

        async def sending(message: Message) -> None:
            if not refused:  # what the app says of a body that it did not get is of no interest
                await send(message)

        await self.app(scope, counting, sending)


async def refuse(send: Send, limit: int) -> None:
    body = b'{"detail":"the request is larger than %d bytes (max_body_bytes)"}' % limit
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
