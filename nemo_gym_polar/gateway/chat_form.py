# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Canonical messages and tools as OpenAI chat JSON, for whoever looks at a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Text, Tool, ToolCall, ToolResult


def chat_messages(message: Message) -> list[dict[str, Any]]:
    """Chat has one message for each tool result; what else was said with them comes after."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    others = [part for part in message.parts if not isinstance(part, ToolResult)]
    rows = list(map(_result, results))
    if others or not results:
        rows.append(_row("user" if results and message.role == "tool" else message.role, message, others))
    return rows


def chat_tool(tool: Tool) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": about}


def _row(role: str, message: Message, parts: Sequence[Part]) -> dict[str, Any]:
    row: dict[str, Any] = {"role": role, "content": _content(parts)}
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    if message.tool_calls:
        row["tool_calls"] = list(map(_call, message.tool_calls))
    return row


def _result(result: ToolResult) -> dict[str, Any]:
    row = {"role": "tool", "tool_call_id": result.call_id, "content": _content(result.parts)}
    return {**row, "is_error": True} if result.is_error else row


def _content(parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """Text alone is a string, as most clients expect it."""
    shown = [part for part in parts if isinstance(part, Text | Image | Opaque)]
    if all(isinstance(part, Text) for part in shown):
        return "".join(part.text for part in shown if isinstance(part, Text))
    return list(map(_part, shown))


def _part(part: Text | Image | Opaque) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url):
            return {"type": "image_url", "image_url": {"url": url}}
        case Opaque():
            return {"type": "opaque"}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
