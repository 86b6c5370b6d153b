# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A canonical conversation as the message dictionaries that chat templates and engines read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.engines.base import EngineError

Wire = dict[str, Any]


def tools(declared: Iterable[Tool]) -> list[Wire]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in declared
    ]


def messages(history: Iterable[Message]) -> list[Wire]:
    return [wire for message in history for wire in _message(message)]


def _message(message: Message) -> Iterator[Wire]:
    """One message becomes several when it carries the results of several tool calls."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        yield _result(result)
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    if rest or not results:
        yield _assistant(message) if message.role == "assistant" else {"role": message.role, "content": _content(rest)}


def _result(result: ToolResult) -> Wire:
    wire: Wire = {"role": "tool", "tool_call_id": result.call_id, "content": _content(result.parts)}
    if result.name:
        wire["name"] = result.name
    return wire


def _assistant(message: Message) -> Wire:
    spoken = [part for part in message.parts if isinstance(part, Text | Image | Opaque) and not _is_call(part)]
    wire: Wire = {"role": "assistant", "content": _content(spoken)}
    if message.reasoning:
        wire["reasoning_content"] = message.reasoning
    if calls := [_call(part) for part in message.parts if isinstance(part, ToolCall) or _is_call(part)]:
        wire["tool_calls"] = calls
    return wire


def _is_call(part: Part) -> bool:
    """A tool call of a kind that only its own dialect knows."""
    return isinstance(part, Opaque) and "id" in part.value


def _call(call: Part) -> Wire:
    if not isinstance(call, ToolCall):
        return _part(call)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call.arguments)}}


def _arguments(text: str) -> str:
    """Templates read arguments as a JSON object; text that is none is shown as the value of one key."""
    try:
        if isinstance(orjson.loads(text or "{}"), dict):
            return text or "{}"
    except orjson.JSONDecodeError:
        pass
    return orjson.dumps({"unparsed_arguments": text}).decode()


def _content(parts: Sequence[Part]) -> str | list[Wire]:
    if all(isinstance(part, Text) for part in parts):
        return "".join([part.text for part in parts if isinstance(part, Text)])
    return [_part(part) for part in parts]


def _part(part: Part) -> Wire:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url):
            return {"type": "image_url", "image_url": {"url": url}}
        case Opaque("chat", value):
            return dict(value)
    raise EngineError(f"A message holds {part!r:.80}, which this engine can't read.", fault="unsupported", status=400)
