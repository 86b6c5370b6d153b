# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Writing TOML, which the standard library only reads: one line per key, deeper values inline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def document(values: Mapping[str, Any]) -> str:
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in values.items())


def _value(value: Any) -> str:
    match value:
        case Mapping():
            inner = ", ".join(f"{_text(str(key))} = {_value(inner)}" for key, inner in value.items())
            return f"{{{inner}}}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case str():
            return _text(value)
        case bool() | int() | float():
            return json.dumps(value)
    raise TypeError(f"TOML has no form for {value!r}")


def _text(text: str) -> str:
    """A basic string: as in JSON, but DEL is escaped and nothing is a pair of surrogates."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
