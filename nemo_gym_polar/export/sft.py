# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations for supervised fine-tuning: messages and tools, as chat templates and trainers read them.

A row is a conversation of a session to its end, from the forest's own canonical messages; nothing is decoded from
tokens. Where conversations of a session share their beginning, each answer is to be learnt in one of them only: an
assistant message says `trained` true exactly there, and false for what the policy did not say.

Every row has the same shape, so `datasets` reads the file without a schema: `content` is always text, `tools` is JSON
in a string, since schemas of different tools have no common type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import orjson

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import TraceKind
from nemo_gym_polar.forest.tree import Node
from nemo_gym_polar.forest.turn import Flag, Status, Turn

MAIN: tuple[TraceKind, ...] = ("main",)


class NotTextError(ValueError):
    """A conversation that has no form as text; `cause` names what stands in it."""

    def __init__(self, session_id: str, turn: int, cause: str) -> None:
        super().__init__(f"session {session_id}: the conversation of turn {turn} holds {cause}")
        self.cause = cause


def conversations(store: TurnStore, kinds: Collection[TraceKind] = MAIN) -> Iterator[Turn]:
    """The turns that end a conversation of one of `kinds`: kept, and no kept answer comes after theirs."""
    kept = [turn for turn in store.turns if _learnable(turn) and store.kind(turn) in kinds]
    inner = _histories(store, kept)
    seen: set[int] = set()
    for turn in kept:
        if turn.answer is not None and turn.answer not in inner and turn.answer not in seen:
            seen.add(turn.answer)
            yield turn


def _histories(store: TurnStore, turns: Iterable[Turn]) -> set[int]:
    """Every message that one of `turns` was asked after; each is visited once, however long the session."""
    found: set[int] = set()
    for turn in turns:
        node: Node | None = store.tree.nodes[turn.request]
        while node is not None and node.index not in found:
            found.add(node.index)
            node = node.parent
    return found


def encode_conversation(store: TurnStore, last: Turn, learnt: set[int]) -> dict[str, Any]:
    """`messages` and `tools` of the conversation that `last` ends. Answers in `learnt` (message nodes) are context
    here; those that this row teaches are added. Raises `NotTextError` for images, and for blocks of one provider."""
    assert last.answer is not None
    path = store.tree.path(store.tree.nodes[last.answer])
    if cause := next((cause for node in path if (cause := _not_text(node.message))), None):
        raise NotTextError(store.session_id, last.index, cause)
    messages = [row for node in path for row in _messages(node, trained=_teaches(store, node, learnt))]
    learnt.update(node.index for node in path)
    return {"messages": messages, "tools": orjson.dumps(list(map(_tool, path[0].tools))).decode()}


def _learnable(turn: Turn) -> bool:
    """Whether the policy said it and the harness has it. A grammar spoils log-probabilities, not what was said."""
    return turn.status is Status.KEPT and Flag.NOT_POLICY not in turn.flags and turn.answer is not None


def _teaches(store: TurnStore, node: Node, learnt: set[int]) -> bool:
    return node.index not in learnt and any(_learnable(store[turn]) for turn in node.answers)


def _messages(node: Node, *, trained: bool) -> Iterator[dict[str, Any]]:
    """A canonical message as chat messages; each tool result is a message of its own."""
    message = node.message
    assert message is not None
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        yield _row("tool", _text(result.parts), tool_call_id=result.call_id, name=result.name)
    if not results or message.text:
        calls = list(map(_call, message.tool_calls)) or None
        reasoning = message.reasoning or None
        role = "user" if results else message.role
        yield _row(role, message.text, reasoning_content=reasoning, tool_calls=calls, trained=trained)


def _row(role: str, content: str, *, trained: bool = False, **others: Any) -> dict[str, Any]:
    optional = ("reasoning_content", "tool_calls", "tool_call_id", "name")
    return {"role": role, "content": content, **{key: others.get(key) for key in optional}, "trained": trained}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def _not_text(message: Message | None) -> str | None:
    assert message is not None
    parts = [*message.parts, *(inner for part in message.parts if isinstance(part, ToolResult) for inner in part.parts)]
    if any(isinstance(part, Image) for part in parts):
        return "images"
    return next((f"{part.dialect} blocks" for part in parts if isinstance(part, Opaque)), None)
