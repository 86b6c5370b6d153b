# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Custom (freeform) tools of OpenAI's APIs: to the model, a function with one text parameter.

A grammar that comes with the tool is told to the model in words; its answers are not held to it, for a constrained
distribution would not be the policy's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from nemo_gym_polar.chat import Request, Tool
from nemo_gym_polar.dialects import fields

PARAMETER = "input"


def tool(declared: Mapping[str, Any], path: str, namespace: str | None = None) -> Tool:
    """The tool that `declared` (name, description, format) asks for."""
    name = fields.text(declared.get("name"), f"{path}.name")
    description = fields.optional_text(declared.get("description"), f"{path}.description") or ""
    wanted = fields.mapping(declared.get("format") or {}, f"{path}.format")
    # Chat Completions wraps the grammar once more than Responses does.
    grammar = wanted.get("grammar") if isinstance(wanted.get("grammar"), dict) else wanted
    if wanted.get("type") == "grammar" and isinstance(grammar, dict) and isinstance(grammar.get("definition"), str):
        syntax = grammar.get("syntax", "")
        description = f"{description}\n\nThe input must match this {syntax} grammar:\n{grammar['definition']}".strip()
    schema = {"type": "object", "properties": {PARAMETER: {"type": "string"}}, "required": [PARAMETER]}
    full = name if namespace is None else f"{namespace}__{name}"
    return Tool(full, description, schema, kind="custom", namespace=namespace)


def names(request: Request) -> frozenset[str]:
    """The custom tools of a request."""
    return frozenset(tool.name for tool in request.conversation.callable_tools if tool.kind == "custom")


def arguments(text: str) -> str:
    """What a model would have written to call a custom tool with `text`."""
    return orjson.dumps({PARAMETER: text}).decode()


def text(arguments: str) -> str:
    """What a model's call says to a custom tool; arguments of another shape are passed on verbatim."""
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    said = value.get(PARAMETER) if isinstance(value, dict) else None
    return said if isinstance(said, str) else arguments
