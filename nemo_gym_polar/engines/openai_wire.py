# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The canonical conversation in the words of the Chat Completions API, which chat templates and engines read.

And back: sampling values, and the message that an engine parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from nemo_gym_polar.chat import (
    Conversation,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from nemo_gym_polar.engines.base import EngineError

Wire = dict[str, Any]

# Said aloud, because a server fills in what is missing from the model's generation_config.json.
_UNTOUCHED = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


def encode(body: Wire) -> bytes:
    """Arrays of ids are written as lists."""
    return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)


def parameters(sampling: Sampling) -> Wire:
    """Sampling values that leave a server nothing to fill in."""
    return {**_UNTOUCHED, **given(sampling)}


def given(sampling: Sampling) -> Wire:
    """The sampling values that were asked for."""
    values = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
        "response_format": None if sampling.schema is None else _response_format(sampling.schema),
    }
    return {name: value for name, value in values.items() if value is not None}


def _response_format(schema: Mapping[str, Any]) -> Wire:
    if not schema:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}


def asked(conversation: Conversation) -> Wire:
    """What the model reads: messages, and tools where there are any."""
    body: Wire = {"messages": messages(conversation.messages)}
    if declared := tools(conversation.tools):
        body["tools"] = declared
    return body


def answered(choice: Mapping[str, Any]) -> Message:
    """The message of a choice as the server parsed it; `TypeError`, `LookupError` or `AttributeError` if unreadable."""
    wire = choice.get("message") or {}
    parts: list[Part] = []
    if reasoning := wire.get("reasoning") or wire.get("reasoning_content"):
        parts.append(Reasoning(_text(reasoning)))
    if text := wire.get("content"):
        parts.append(Text(_text(text)))
    for call in wire.get("tool_calls") or ():
        function = call["function"]
        arguments = function.get("arguments") or ""
        # SGLang allows itself an object where the API has text.
        said = orjson.dumps(arguments).decode() if isinstance(arguments, dict) else _text(arguments)
        parts.append(ToolCall(_text(call.get("id") or ""), _text(function["name"]), said))
    return Message("assistant", tuple(parts))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


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
