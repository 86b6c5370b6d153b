# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The canonical form of a message: equal for every faithful echo of it, different for any change of meaning.

Harnesses repeat the history in every request, each with its own habits. What they may change without changing what
was said: call ids and cache markers, the key order, spacing and number style of JSON arguments, white space around
thinking and answers, empty against absent content, one text against a list of texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult

DIGEST_BYTES = 16
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_CACHE_MARKERS = frozenset({"cache_control", "cachePoint", "cache_point"})
_EXACT_FLOAT = 2.0**53


def digest_bytes(*chunks: bytes) -> bytes:
    """A 16-byte BLAKE2b of the chunks, one after the other."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def message_digest(message: Message) -> bytes:
    return digest_bytes(canonical_bytes(message))


def tools_digest(tools: Iterable[Tool]) -> bytes:
    plain = [[tool.name, tool.description, _plain(tool.parameters)] for tool in tools]
    return digest_bytes(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS))


def canonical_bytes(message: Message) -> bytes:
    """The JSON text that two messages share exactly when they say the same."""
    return orjson.dumps([message.role, *_body(message)], option=orjson.OPT_SORT_KEYS)


def canonical_arguments(arguments: str) -> Any:
    """Tool-call arguments as a JSON value with numbers in one style; text that is not JSON stays text, trimmed."""
    if not arguments.strip():
        return {}
    try:
        return _numbers(orjson.loads(arguments))
    except orjson.JSONDecodeError:
        return arguments.strip()


def thinking(message: Message) -> str:
    """All that was thought, without the white space around each part."""
    return "".join(part.text.strip() for part in message.parts if isinstance(part, Reasoning))


def _body(message: Message) -> list[Any]:
    if message.role == "assistant":
        rest = [part for part in message.parts if not isinstance(part, Text | Reasoning)]
        return [thinking(message), message.text.strip(), *map(_canonical_part, rest)]
    return [_canonical_part(part) for part in _merged(message.parts)]


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Neighbouring texts joined, empty ones dropped."""
    merged: list[Part] = []
    for part in parts:
        if not isinstance(part, Text):
            merged.append(part)
        elif merged and isinstance(merged[-1], Text):
            merged[-1] = Text(merged[-1].text + part.text)
        elif part.text:
            merged.append(part)
    return merged


def _canonical_part(part: Part) -> list[Any]:
    match part:
        case Text(text):
            return ["text", text]
        case Reasoning(text):
            return ["reasoning", text.strip()]
        case Image(url):
            return ["image", digest_bytes(url.encode()).hex()]
        case ToolCall(_, name, arguments):
            return ["call", name, canonical_arguments(arguments)]
        case ToolResult(_, parts, is_error):
            return ["result", is_error, [_canonical_part(inner) for inner in _merged(parts)]]
        case Opaque(dialect, value):
            return ["opaque", dialect, _plain(value)]


def _plain(value: Any) -> Any:
    """Mappings as dicts, without cache markers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if key not in _CACHE_MARKERS}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _numbers(value: Any) -> Any:
    """Numbers in one style: 10000, 10000.0 and "10000", which Claude Code turns into the first, are the same."""
    match value:
        case dict():
            return {key: _numbers(inner) for key, inner in value.items()}
        case list():
            return [_numbers(inner) for inner in value]
        case float():
            return int(value) if value.is_integer() and abs(value) < _EXACT_FLOAT else value
        case str() if _NUMBER.fullmatch(value):
            return _number(value)
        case _:
            return value


def _number(text: str) -> Any:
    """The number that `text` is the usual spelling of; "1.10" and "007" stay texts, they may be names."""
    number = float(text)
    if not math.isfinite(number) or abs(number) >= _EXACT_FLOAT:
        return text
    value = int(number) if number.is_integer() else number
    return value if str(value) == text else text
