# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tool arguments that are not a JSON object, where the Messages API wants an object.

A stream carries such arguments verbatim. An answer in one piece can't, so it takes the form that Claude Code itself
gives to arguments it can't parse; nothing is lost, and both come back as the text that was sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

KEY: Final = "__unparsedToolInput"


def as_object(arguments: str) -> orjson.Fragment | dict[str, Any]:
    """The arguments as an object: verbatim if they are one."""
    try:
        value = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        return orjson.Fragment(arguments or "{}")
    return {KEY: {"raw": arguments, "len": len(arguments.encode("utf-8", "replace"))}}


def raw_text(value: Mapping[str, Any]) -> str | None:
    """The text that `value` stands for; None if it is an object like any other."""
    if value.keys() != {KEY}:
        return None
    held = value[KEY]
    raw = held.get("raw") if isinstance(held, dict) else None
    return raw if isinstance(raw, str) else None
