# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Google's `Schema` message as JSON schema: types in lower case, numbers as numbers, `nullable` as a type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nemo_gym_polar.dialects import fields
from nemo_gym_polar.dialects.base import CallError

MAX_DEPTH: Final = 64
_SPELLING: Mapping[str, str] = {
    "any_of": "anyOf",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
    "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties",
}
_COUNTS = frozenset({"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"})
_INNER = frozenset({"items", "additionalProperties"})
_LEFT_OUT = frozenset({"nullable", "propertyOrdering"})


def json_schema(value: object, path: str, depth: int = 0) -> dict[str, Any]:
    """The JSON schema that says what `value`, found at `path`, says."""
    if depth > MAX_DEPTH:
        raise CallError("invalid_request", f"'{path}': maximum schema depth exceeded ({MAX_DEPTH}).", param=path)
    schema: dict[str, Any] = {}
    given = fields.mapping(value, path)
    for spelled, inner in given.items():
        name = _SPELLING.get(spelled, spelled)
        if name not in _LEFT_OUT:
            schema[name] = _field(name, inner, f"{path}.{spelled}", depth)
    if given.get("nullable") is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    return schema


def _field(name: str, value: object, path: str, depth: int) -> object:
    if name == "type":
        return value.lower() if isinstance(value, str) else value
    if name == "properties":
        properties = fields.mapping(value, path)
        return {key: json_schema(inner, f"{path}.{key}", depth + 1) for key, inner in properties.items()}
    if name == "anyOf":
        return [json_schema(inner, f"{path}[{i}]", depth + 1) for i, inner in enumerate(fields.array(value, path))]
    if name in _INNER and isinstance(value, dict):
        return json_schema(value, path, depth + 1)
    if name in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])  # Google writes 64-bit integers as strings
    return value
