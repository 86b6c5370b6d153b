# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reading fields of a decoded JSON body: the value, or a `CallError` that names the field and what was found there."""

from __future__ import annotations

import json
from typing import Any

import orjson

from nemo_gym_polar.dialects.base import CallError


def body(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _lenient(data)
    if not isinstance(value, dict):
        raise CallError("invalid_request", f"The request body must be a JSON object, not {kind(value)}.")
    return value


def _lenient(data: bytes) -> Any:
    """Programs in JavaScript cut strings inside an emoji; such lone surrogates become «?», anything else is refused."""
    try:
        text = json.dumps(json.loads(data), ensure_ascii=False)
        return orjson.loads(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise CallError("invalid_request", f"The request body is not valid JSON: {error}.") from None


def kind(value: object) -> str:
    """The JSON type of `value`, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"


def wrong(path: str, expected: str, value: object) -> CallError:
    return CallError(
        "invalid_request", f"Invalid type for '{path}': expected {expected}, got {kind(value)}.", param=path
    )


def text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise wrong(path, "a string", value)
    return value


def optional_text(value: object, path: str) -> str | None:
    return None if value is None else text(value, path)


def array(value: object, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong(path, "an array", value)
    return value


def mapping(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value


def optional_bool(value: object, path: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise wrong(path, "a boolean", value)
    return value


def optional_number(value: object, path: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(path, "a number", value)
    return float(value)


def optional_integer(value: object, path: str, *, minimum: int | None = None, maximum: int | None = None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise wrong(path, "an integer", value)
    if minimum is not None and value < minimum:
        raise CallError("invalid_request", f"Invalid '{path}': {value} is below the minimum of {minimum}.", param=path)
    if maximum is not None and value > maximum:
        raise CallError("invalid_request", f"Invalid '{path}': {value} is above the maximum of {maximum}.", param=path)
    return int(value)
