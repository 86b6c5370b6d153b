# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Content blocks of the Messages API, read into canonical parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from nemo_gym_polar.chat import Dialect, Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.dialects import fields, sealed
from nemo_gym_polar.dialects.messages_tools import shown
from nemo_gym_polar.dialects.unparsed import raw_text

NAME: Final[Dialect] = "messages"


@dataclass(frozen=True, slots=True)
class History:
    """The messages, and the tools that they describe by reference."""

    messages: Sequence[Message]
    referred: frozenset[str]


class Reader:
    """Reads the blocks of one request; `tools` are those that a `tool_reference` may name."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._referred: set[str] = set()

    @property
    def referred(self) -> frozenset[str]:
        return frozenset(self._referred)

    def parts(self, value: object, path: str) -> Iterator[Part]:
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
        parts = self.parts("" if content is None else content, f"{path}.content")
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
