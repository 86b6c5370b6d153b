# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The messages of a Messages API request and their content blocks, read into canonical ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Self

import orjson

from nemo_gym_polar.chat import Dialect, Image, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from nemo_gym_polar.dialects import fields, sealed
from nemo_gym_polar.dialects.base import CallError
from nemo_gym_polar.dialects.messages_tools import Declared, shown
from nemo_gym_polar.dialects.unparsed import raw_text

NAME: Final[Dialect] = "messages"


class History:
    """The messages, and the names of the `declared` tools that they describe by reference."""

    def __init__(self, declared: Declared) -> None:
        self.messages: list[Message] = []
        self._declared = declared
        self._tools = {tool.name: tool for tool in declared.all}
        self._referred: set[str] = set()

    @property
    def referred(self) -> frozenset[str]:
        return frozenset(self._referred)

    def copy(self) -> Self:
        other = type(self)(self._declared)
        other.messages, other._referred = self.messages.copy(), self._referred.copy()
        return other

    def read(self, item: Any, path: str) -> None:
        message = fields.mapping(item, path)
        parts = tuple(self._parts(message.get("content"), f"{path}.content"))
        match message.get("role"):
            case "user":
                self.messages.extend(_user(parts))
            case "assistant" | "system" as role:
                self.messages.append(Message(role, parts))
            case role:
                said = f"Invalid '{path}.role': {role!r}; send 'user', 'assistant' or 'system'."
                raise CallError("invalid_request", said, param=f"{path}.role")

    def _parts(self, value: object, path: str) -> Iterator[Part]:
        """A text or a list of blocks; empty texts say nothing."""
        if isinstance(value, str):
            if value:
                yield Text(value)
            return
        for i, block in enumerate(fields.array(value, path)):
            yield self._part(fields.mapping(block, f"{path}[{i}]"), f"{path}[{i}]")

    def _part(self, block: dict[str, Any], path: str) -> Part:
        match block.get("type"):
            case "text":
                return Text(fields.text(block.get("text"), f"{path}.text"))
            case "thinking":
                return _thinking(block, path)
            case "redacted_thinking":
                hidden = sealed.unseal(fields.text(block.get("data"), f"{path}.data"))
                return Opaque(NAME, block) if hidden is None else Reasoning(hidden)
            case "tool_use":
                return _tool_use(block, path)
            case "tool_result":
                return self._tool_result(block, path)
            case "image":
                return _image(block, path)
            case "tool_reference":
                return self._reference(block, path)
            case "document" if (text := _plain_document(block)) is not None:
                return Text(text)
        return Opaque(NAME, block)

    def _tool_result(self, block: Mapping[str, Any], path: str) -> ToolResult:
        content = block.get("content")
        parts = self._parts("" if content is None else content, f"{path}.content")
        return ToolResult(
            call_id=fields.text(block.get("tool_use_id"), f"{path}.tool_use_id"),
            parts=tuple([part if isinstance(part, Text | Image) else Text(_json(part)) for part in parts]),
            is_error=fields.optional_bool(block.get("is_error"), f"{path}.is_error"),
        )

    def _reference(self, block: Mapping[str, Any], path: str) -> Text:
        """The tool that a search found, described where it was found: so the tools up front stay as they were."""
        name = fields.text(block.get("tool_name"), f"{path}.tool_name")
        tool = self._tools.get(name)
        if tool is None:
            return Text(name)
        self._referred.add(name)
        return Text(shown(tool))


def _user(parts: Sequence[Part]) -> Iterator[Message]:
    """What tools say and what the user says, which come in one message, as two."""
    if not parts:
        yield Message("user", ())
    for is_result, run in groupby(parts, lambda part: isinstance(part, ToolResult)):
        role: Role = "tool" if is_result else "user"
        yield Message(role, tuple(run))


def _thinking(block: Mapping[str, Any], path: str) -> Reasoning:
    text = fields.optional_text(block.get("thinking"), f"{path}.thinking") or ""
    signature = fields.optional_text(block.get("signature"), f"{path}.signature")
    hidden = sealed.unseal(signature) if signature else None
    if hidden is None:
        return Reasoning(text, signature=signature or None)
    return Reasoning(text or hidden)


def _tool_use(block: Mapping[str, Any], path: str) -> ToolCall:
    given = fields.mapping(block.get("input"), f"{path}.input")
    raw = raw_text(given)
    return ToolCall(
        id=fields.text(block.get("id"), f"{path}.id"),
        name=fields.text(block.get("name"), f"{path}.name"),
        arguments=orjson.dumps(given).decode() if raw is None else raw,
    )


def _image(block: dict[str, Any], path: str) -> Image | Opaque:
    source = fields.mapping(block.get("source"), f"{path}.source")
    match source.get("type"):
        case "base64":
            media = fields.text(source.get("media_type"), f"{path}.source.media_type")
            return Image(f"data:{media};base64,{fields.text(source.get('data'), f'{path}.source.data')}")
        case "url":
            return Image(fields.text(source.get("url"), f"{path}.source.url"))
    return Opaque(NAME, block)


def _plain_document(block: Mapping[str, Any]) -> str | None:
    source = block.get("source")
    if isinstance(source, dict) and source.get("type") == "text" and isinstance(source.get("data"), str):
        return str(source["data"])
    return None


def _json(part: Part) -> str:
    return orjson.dumps(part.value if isinstance(part, Opaque) else part).decode()
