# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Messages and tools as plain JSON values and back, without loss. Each part is a list that starts with its tag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult


def dump_message(message: Message) -> list[Any]:
    return [message.role, *map(_dump_part, message.parts)]


def load_message(value: list[Any]) -> Message:
    return Message(value[0], tuple(map(_load_part, value[1:])))


def dump_tools(tools: Iterable[Tool]) -> list[Any]:
    return [[tool.name, tool.description, dict(tool.parameters)] for tool in tools]


def load_tools(value: list[Any]) -> tuple[Tool, ...]:
    return tuple(Tool(*fields) for fields in value)


def _dump_part(part: Part) -> list[Any]:
    match part:
        case Text(text):
            return ["t", text]
        case Reasoning(text, signature, encrypted):
            return ["r", text, signature, encrypted]
        case Image(url):
            return ["i", url]
        case ToolCall(call_id, name, arguments):
            return ["c", call_id, name, arguments]
        case ToolResult(call_id, parts, is_error, name):
            return ["o", call_id, list(map(_dump_part, parts)), is_error, name]
        case Opaque(dialect, value):
            return ["x", dialect, value]


def _load_part(value: list[Any]) -> Part:
    match value:
        case ["t", text]:
            return Text(text)
        case ["r", text, signature, encrypted]:
            return Reasoning(text, signature, encrypted)
        case ["i", url]:
            return Image(url)
        case ["c", call_id, name, arguments]:
            return ToolCall(call_id, name, arguments)
        case ["o", call_id, parts, is_error, name]:
            inner = [part for part in map(_load_part, parts) if isinstance(part, Text | Image)]
            return ToolResult(call_id, tuple(inner), is_error, name)
        case ["x", dialect, opaque]:
            return Opaque(dialect, opaque)
        case _:
            raise ValueError(f"no message part has the tag {value[:1]}")
