# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What no client shows: upgrades, methods, paths, bodies that are no JSON."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

from nemo_gym_polar.conformance.case import TIMEOUT, Case, Subject, check

GENERATE = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "generate_content": "/v1beta/models/any:generateContent",
}


def ask(subject: Subject, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    """The status of one bare request."""
    url = urlsplit(subject.url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.netloc, timeout=TIMEOUT)
    try:
        told = {"authorization": f"Bearer {subject.key}", "content-type": "application/json", **headers}
        connection.request(method, url.path + path, body, told)
        return connection.getresponse().status
    finally:
        connection.close()


def upgrade(subject: Subject) -> str:
    """Codex tries a WebSocket first and falls back at once on 426 only."""
    status = ask(subject, "GET", "/v1/responses", upgrade="websocket", connection="upgrade")
    check(status == 426, f"status {status} in place of 426")
    return ""


def hello(subject: Subject) -> str:
    status = ask(subject, "HEAD", "/api/hello")
    check(status == 200, f"status {status} in place of 200")
    return ""


def methods(subject: Subject) -> str:
    for path in GENERATE.values():
        status = ask(subject, "GET", path)
        check(status == 405, f"GET {path}: status {status} in place of 405")
    return ""


def paths(subject: Subject) -> str:
    for path in ("/v1/nowhere", "/v1beta/nowhere", "/nowhere"):
        status = ask(subject, "POST", path, b"{}")
        check(status == 404, f"POST {path}: status {status} in place of 404")
    return ""


def bodies(subject: Subject) -> str:
    for path in GENERATE.values():
        for body in (b"", b"{", b"[]", b"null", b"\xff", b'{"a":' * 1000):
            status = ask(subject, "POST", path, body)
            check(status == 400, f"POST {path} {body[:8]!r}: status {status} in place of 400")
    return ""


CASES: tuple[Case, ...] = (
    Case("wire", "websocket upgrade", upgrade),
    Case("wire", "hello", hello),
    Case("wire", "methods", methods),
    Case("wire", "unknown paths", paths),
    Case("wire", "bodies", bodies),
)
