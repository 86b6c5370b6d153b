# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A session's model calls as JSON: what was asked, what was answered, and its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from nemo_gym_polar.chat import Image, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.turn import Turn


def completions(forest: TurnStore) -> list[dict[str, Any]]:
    """In the order of their answers; arrays are left to orjson."""
    return [_completion(forest, turn) for turn in forest.turns]


def _completion(forest: TurnStore, turn: Turn) -> dict[str, Any]:
    conversation = forest.conversation(turn)
    answer = forest.answer(turn)
    return {
        "completion_id": turn.response_id or f"{forest.session_id}-{turn.index}",
        "timestamp": turn.ended,
        "request": {
            "model": turn.model,
            "messages": list(map(_message, conversation.messages)),
            "tools": list(map(_tool, conversation.tools)),
            "temperature": turn.temperature,
        },
        "response": {
            "message": None if answer is None else _message(answer),
            "finish_reason": turn.finish_reason,
            "prompt_token_ids": forest.context(turn.index),
            "token_ids": turn.sampled,
            "logprobs": turn.logprobs,
        },
        "metadata": {
            "turn": turn.index,
            "parent": turn.parent,
            "edge": turn.edge,
            "cause": turn.cause,
            "status": turn.status,
            "flags": sorted(turn.flags),
            "dialect": turn.dialect,
            "versions": [asdict(span) for span in turn.versions],
            "started": turn.started,
        },
    }


def _message(message: Message) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": _parts(message.parts)}
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    if message.tool_calls:
        row["tool_calls"] = [_call(call) for call in message.tool_calls]
    return row


def _parts(parts: Iterable[object]) -> str | list[dict[str, Any]]:
    """Text alone is a string, as most clients expect it."""
    shown = [part for part in parts if not isinstance(part, Reasoning | ToolCall)]
    if all(isinstance(part, Text) for part in shown):
        return "".join(part.text for part in shown if isinstance(part, Text))
    return [_part(part) for part in shown]


def _part(part: object) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": part.url}}
    if isinstance(part, ToolResult):
        return {"type": "tool_result", "tool_call_id": part.call_id, "content": _parts(part.parts)}
    assert isinstance(part, Opaque)
    return {"type": "opaque"}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(tool: Tool) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": about}
