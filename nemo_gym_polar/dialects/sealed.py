# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Thinking inside a provider's opaque proof of it.

Providers give a signature, encrypted content or a thought signature with the thinking, and harnesses send it back
unchanged, even those that drop the thinking itself. Ours holds the thinking, compressed, so that it always comes back.
Nothing is secret about it: a harness may read what its own model thought.
"""

from __future__ import annotations

import base64
import binascii
import zlib

_PREFIX = "cG9sYXIx"  # «polar1»
_MAX_BYTES = 16 * 1024 * 1024


def seal(text: str) -> str:
    """An opaque base64 token that holds `text`."""
    return _PREFIX + base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()


def unseal(token: str) -> str | None:
    """The text in a token of ours; None for any other, which some other server made."""
    if not token.startswith(_PREFIX):
        return None
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(token[len(_PREFIX) :], validate=True), _MAX_BYTES)
        return data.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError):
        return None
