# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The `input` of the Responses API: a list of items, each a message, a thought, a call or a result.

One answer of a model is several items. Items of the assistant that follow each other are therefore one canonical
message, equal to the answer that was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import orjson

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Reasoning, Role, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.dialects import fields, freeform, responses_tools, sealed
from nemo_gym_polar.dialects.base import CallError

_ROLES: Mapping[Any, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
Said = tuple[Role, list[Part]]


class Input:
    """What the items say. `tools` were declared before any message, `found` later: their text is in the history."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tools: list[responses_tools.Declared] = []
        self.found: list[Tool] = []
        self._leading = True

    def copy(self) -> Self:
        other = type(self)()
        other.messages, other.tools, other.found = self.messages.copy(), self.tools.copy(), self.found.copy()
        other._leading = self._leading
        return other

    def read(self, item: Any, path: str) -> None:
        item = fields.mapping(item, path)
        match item.get("type"):
            case "additional_tools":
                tools = responses_tools.declared(item.get("tools"), f"{path}.tools")
                if self._leading:
                    self.tools.extend(tools)
                    return
                self.found.extend(entry.tool for entry in tools)
                self._say("system", [Text(_json(item.get("tools")))])
            case "tool_search_output":
                tools = responses_tools.declared(item.get("tools"), f"{path}.tools")
                self.found.extend(entry.tool for entry in tools)
                self._say("tool", [ToolResult(_call_id(item, path), (Text(_json(item.get("tools") or [])),))])
            case _:
                self._say(*_item(item, path))
        self._leading = False

    def _say(self, role: Role, parts: list[Part]) -> None:
        if role == "assistant" and self.messages and self.messages[-1].role == "assistant":
            parts = [*self.messages.pop().parts, *parts]
        self.messages.append(Message(role, tuple(parts)))


def items(value: object, path: str, *, role: str = "user") -> list[Any]:
    """A list of items; a text is one message of `role`."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return [] if value is None else fields.array(value, path)


def _item(item: Mapping[str, Any], path: str) -> Said:
    match item.get("type"):
        case None | "message":
            return _message(item, path)
        case "reasoning":
            return "assistant", _reasoning(item, path)
        case "function_call":
            arguments = fields.optional_text(item.get("arguments"), f"{path}.arguments") or ""
            return "assistant", [ToolCall(_call_id(item, path), _name(item, path), arguments)]
        case "custom_tool_call":
            said = fields.optional_text(item.get("input"), f"{path}.input") or ""
            return "assistant", [ToolCall(_call_id(item, path), _name(item, path), freeform.arguments(said))]
        case "tool_search_call":
            return "assistant", [ToolCall(_call_id(item, path), responses_tools.TOOL_SEARCH, _given(item))]
        case "local_shell_call":
            return "assistant", [ToolCall(_call_id(item, path), "local_shell", _json(item.get("action") or {}))]
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            return "tool", [ToolResult(_call_id(item, path), _output(item.get("output"), f"{path}.output"))]
        case "item_reference":
            message = f"'{path}' refers to a stored item; send the item itself, or use previous_response_id."
            raise CallError("invalid_request", message, param=path)
        case str() as kind:
            return ("tool" if kind.endswith("_output") else "assistant"), [Opaque("responses", item)]
    raise fields.wrong(f"{path}.type", "a string", item.get("type"))


def _message(item: Mapping[str, Any], path: str) -> Said:
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        known = ", ".join(map(repr, _ROLES))
        raise CallError("invalid_request", f"Invalid '{path}.role': {role!r}; send {known}.", param=f"{path}.role")
    return _ROLES[role], list(_content(item.get("content"), f"{path}.content"))


def _content(value: object, path: str) -> Iterator[Text | Image | Opaque]:
    if isinstance(value, str):
        if value:
            yield Text(value)
    elif value is not None:
        for i, item in enumerate(fields.array(value, path)):
            part = _part(fields.mapping(item, f"{path}[{i}]"), f"{path}[{i}]")
            if part != Text(""):
                yield part


def _part(part: dict[str, Any], path: str) -> Text | Image | Opaque:
    kind = part.get("type")
    if kind == "refusal":
        return Text(fields.text(part.get("refusal"), f"{path}.refusal"))
    if kind == "input_image" and part.get("image_url") is not None:
        return Image(fields.text(part["image_url"], f"{path}.image_url"))
    if isinstance(kind, str) and kind in _TEXTS:
        return Text(fields.text(part.get("text"), f"{path}.text"))
    return Opaque("responses", part)


def _reasoning(item: Mapping[str, Any], path: str) -> list[Part]:
    """The thinking: from a token of ours, which is whole; else from the content, else from its summary."""
    token = fields.optional_text(item.get("encrypted_content"), f"{path}.encrypted_content")
    ours = sealed.unseal(token) if token else None
    if ours is not None:
        return [Reasoning(ours)] if ours else []
    content = list(_content(item.get("content"), f"{path}.content"))
    summary = list(_content(item.get("summary"), f"{path}.summary"))
    text = _joined(content, "") or _joined(summary, "\n\n")
    return [Reasoning(text, encrypted=token)] if text or token else []


def _joined(parts: Iterable[Part], between: str) -> str:
    return between.join(part.text for part in parts if isinstance(part, Text))


def _call_id(item: Mapping[str, Any], path: str) -> str:
    found = item.get("call_id")
    return fields.optional_text(item.get("id") if found is None else found, f"{path}.call_id") or ""


def _name(item: Mapping[str, Any], path: str) -> str:
    name = fields.text(item.get("name"), f"{path}.name")
    return responses_tools.full_name(name, fields.optional_text(item.get("namespace"), f"{path}.namespace"))


def _given(item: Mapping[str, Any]) -> str:
    arguments = item.get("arguments")
    return arguments if isinstance(arguments, str) else _json({} if arguments is None else arguments)


def _output(value: object, path: str) -> tuple[Text | Image, ...]:
    parts = _content(value, path)
    return tuple([Text(_json(part.value)) if isinstance(part, Opaque) else part for part in parts])


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
