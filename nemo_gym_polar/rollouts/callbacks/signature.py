# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The signature of a callback: HMAC-SHA256 over time and body, so that neither can be changed, or replayed much later.

`X-Polar-Signature: t=<Unix seconds>,v1=<hex>`, where hex is over `<t>.<body>`.
"""

from __future__ import annotations

import hmac
import time

HEADER = "X-Polar-Signature"
TOLERANCE = 300.0  # seconds that a receiver's clock may differ


def sign(key: bytes, body: bytes, at: int) -> str:
    digest = hmac.new(key, b"%d." % at + body, "sha256").hexdigest()
    return f"t={at},v1={digest}"


def verify(key: bytes, body: bytes, header: str, *, now: float | None = None, tolerance: float = TOLERANCE) -> bool:
    """For receivers: whether `body` came from the holder of `key` within `tolerance` seconds."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    stamp = parts.get("t", "")
    if not stamp.isascii() or not stamp.isdigit():
        return False
    fresh = abs((time.time() if now is None else now) - int(stamp)) <= tolerance
    return hmac.compare_digest(sign(key, body, int(stamp)).encode(), header.encode("utf-8", "replace")) and fresh
