# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The contents of a generateContent request as messages.

A client may drop the ids of function calls; results then belong to the calls before them, by name and order. It may
drop thinking but keep the signature that holds it; then the thinking is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, Self

import orjson

from nemo_gym_polar.chat import Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from nemo_gym_polar.dialects import fields
from nemo_gym_polar.dialects.base import CallError
from nemo_gym_polar.dialects.sealed import unseal

_ABOUT_PARTS = frozenset({
    "thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "mediaResolution",
    "media_resolution", "partMetadata", "part_metadata",
})  # fmt: skip
_SAYING = frozenset({"output", "error", "result", "content"})
_ROLES: Final = "'user' or 'model'"


def given(value: Mapping[str, Any], name: str) -> Any:
    """The field `name`, in camel case or in snake case: the API takes both."""
    found = value.get(name)
    return value.get(_snake(name)) if found is None else found


def _snake(name: str) -> str:
    return "".join([f"_{letter.lower()}" if letter.isupper() else letter for letter in name])


def contents(value: object) -> list[Any]:
    """A list of contents; a text or one content stands for a list."""
    return value if isinstance(value, list) else [value]


class History:
    """The messages of some contents."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._calls = _Calls()

    def copy(self) -> Self:
        other = type(self)()
        other.messages, other._calls = self.messages.copy(), self._calls.copy()
        return other

    def read(self, item: Any, path: str) -> None:
        self.messages.extend(_content(item, path, self._calls))


def instruction(value: object) -> tuple[Message, ...]:
    """The system message that `systemInstruction` asks for, if it says anything."""
    path = "systemInstruction"
    parts = tuple([_plain(part, where) for part, where in _parts(value, path)]) if value is not None else ()
    return (Message("system", parts),) if parts else ()


class _Calls:
    """The calls of the last model turn that have no result yet: id to name."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        self._made = 0
        self._answering = False

    def copy(self) -> Self:
        other = type(self)()
        other._waiting, other._made, other._answering = self._waiting.copy(), self._made, self._answering
        return other

    def called(self, name: str, call_id: str | None) -> str:
        if self._answering:
            self._waiting.clear()
            self._answering = False
        self._made += 1
        call_id = call_id or f"call_{self._made}"
        self._waiting[call_id] = name
        return call_id

    def answered(self, name: str | None, call_id: str | None) -> str:
        self._answering = True
        if not call_id:
            named = (waiting for waiting, called in self._waiting.items() if called == name)
            call_id = next(named, None) or next(iter(self._waiting), "")
        self._waiting.pop(call_id, None)
        return call_id


def _content(value: object, path: str, calls: _Calls) -> Iterator[Message]:
    role = value.get("role") if isinstance(value, dict) else None
    parts = _parts(value, path)
    match role:
        case "model":
            yield Message("assistant", tuple(_model_parts(parts, calls)))
        case "system":
            yield Message("system", tuple([_plain(part, where) for part, where in parts]))
        case "user" | "function" | "tool" | "" | None:
            yield from _said_to_model(parts, calls)
        case _:
            message = f"Please use a valid role: {_ROLES}, not {role!r} in '{path}.role'."
            raise CallError("invalid_request", message, param=f"{path}.role")


def _parts(value: object, path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The parts of a content; a text, a bare part and a list of parts are taken for one too. Empty ones say nothing."""
    if isinstance(value, dict) and ("parts" in value or "role" in value):
        value, path = value.get("parts"), f"{path}.parts"
    for i, item in enumerate(value if isinstance(value, list) else () if value is None else (value,)):
        where = f"{path}[{i}]"
        part = {"text": item} if isinstance(item, str) else fields.mapping(item, where)
        if part:
            yield part, where


def _said_to_model(parts: Iterable[tuple[Mapping[str, Any], str]], calls: _Calls) -> Iterator[Message]:
    """Results and words in one content become messages of their own, in order."""
    read = [_told(part, where, calls) for part, where in parts]
    for is_result, group in groupby([part for part in read if part is not None], _is_result):
        yield Message("tool" if is_result else "user", tuple(group))
    if not read:
        yield Message("user", ())


def _is_result(part: Part) -> bool:
    return isinstance(part, ToolResult)


def _told(part: Mapping[str, Any], path: str, calls: _Calls) -> Part | None:
    if (result := given(part, "functionResponse")) is not None:
        return _result(fields.mapping(result, f"{path}.functionResponse"), f"{path}.functionResponse", calls)
    return None if part.keys() <= _ABOUT_PARTS else _plain(part, path)


def _model_parts(parts: Iterable[tuple[Mapping[str, Any], str]], calls: _Calls) -> list[Part]:
    """What the model said. Its sealed thinking is exact, so it takes the place of any that is shown."""
    sealed: list[str] = []
    said: list[Part] = []
    for part, path in parts:
        signature = fields.optional_text(given(part, "thoughtSignature"), f"{path}.thoughtSignature")
        if signature and (thought := unseal(signature)):
            sealed.append(thought)
        if (call := given(part, "functionCall")) is not None:
            said.append(_call(fields.mapping(call, f"{path}.functionCall"), f"{path}.functionCall", calls))
        elif not part.keys() <= _ABOUT_PARTS:
            said.append(_spoken(part, path))
    if sealed:
        said = [Reasoning("".join(sealed)), *(part for part in said if not isinstance(part, Reasoning))]
    return [part for part in said if part != Text("")]


def _spoken(part: Mapping[str, Any], path: str) -> Part:
    if part.get("thought") is True and isinstance(part.get("text"), str):
        return Reasoning(part["text"])
    return _plain(part, path)


def _plain(part: Mapping[str, Any], path: str) -> Text | Image | Opaque:
    """A text or an image; what else there is, code, its output, other media, keeps its form."""
    if (text := part.get("text")) is not None:
        return Text(fields.text(text, f"{path}.text"))
    return _image(part, path) or Opaque("generate_content", dict(part))


def _image(part: Mapping[str, Any], path: str) -> Image | None:
    for name, holds in (("inlineData", "data"), ("fileData", "fileUri")):
        if (value := given(part, name)) is None:
            continue
        blob = fields.mapping(value, f"{path}.{name}")
        kind = fields.optional_text(given(blob, "mimeType"), f"{path}.{name}.mimeType") or ""
        if kind.startswith("image/"):
            data = fields.text(given(blob, holds), f"{path}.{name}.{holds}")
            return Image(f"data:{kind};base64,{data}" if holds == "data" else data)
    return None


def _call(call: Mapping[str, Any], path: str, calls: _Calls) -> ToolCall:
    name = fields.text(call.get("name"), f"{path}.name")
    args = fields.mapping({} if call.get("args") is None else call["args"], f"{path}.args")
    call_id = calls.called(name, fields.optional_text(call.get("id"), f"{path}.id"))
    return ToolCall(call_id, name, orjson.dumps(args).decode())


def _result(result: Mapping[str, Any], path: str, calls: _Calls) -> ToolResult:
    name = fields.optional_text(result.get("name"), f"{path}.name")
    response = fields.mapping({} if result.get("response") is None else result["response"], f"{path}.response")
    media = [_media(part, where) for part, where in _parts(result.get("parts"), f"{path}.parts")]
    return ToolResult(
        call_id=calls.answered(name, fields.optional_text(result.get("id"), f"{path}.id")),
        parts=(*_response(response), *media),
        is_error=bool(response.get("error")),
        name=name,
    )


def _response(response: Mapping[str, Any]) -> tuple[Text, ...]:
    """The one thing that a response says, bare, or else the whole of it as JSON."""
    if not response:
        return ()
    said = next(iter(response.values())) if len(response) == 1 and response.keys() <= _SAYING else response
    return (Text(said if isinstance(said, str) else orjson.dumps(said).decode()),)


def _media(part: Mapping[str, Any], path: str) -> Text | Image:
    found = _plain(part, path)
    return Text(orjson.dumps(found.value).decode()) if isinstance(found, Opaque) else found
