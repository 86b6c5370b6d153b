# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Thinking inside a provider's opaque proof of it.

Providers give a signature, encrypted content or a thought signature with the thinking, and harnesses send it back
unchanged, even those that drop the thinking itself. Ours holds the thinking, compressed, so that it always comes back.
Nothing is secret about it: a harness may read what its own model thought.
"""

from __future__ import annotations

import base64
import zlib

_PREFIX = "cG9sYXIx"  # «polar1»
_STANDARD = str.maketrans("-_", "+/")
_MAX_BYTES = 16 * 1024 * 1024


def seal(text: str) -> str:
    """An opaque base64 token that holds `text`."""
    return _PREFIX + base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()


def unseal(token: str) -> str | None:
    """The text in a token of ours; None for any other, which some other server made.

    Clients that hold the token as bytes may write it in the URL-safe alphabet.
    """
    if not token.startswith(_PREFIX):
        return None
    try:
        data = base64.b64decode(token[len(_PREFIX) :].translate(_STANDARD), validate=True)
        opened = zlib.decompressobj()
        text = opened.decompress(data, _MAX_BYTES).decode()
    except (ValueError, zlib.error):  # not ASCII, not base64, not compressed, not UTF-8
        return None
    return text if opened.eof else None
