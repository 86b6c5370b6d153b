# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Renders conversations with the Jinja chat template of a model directory, without importing `transformers`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment


class TemplateRefusalError(ValueError):
    """The template does not accept the conversation; the message is the template's own."""


class ChatTemplate:
    """A compiled chat template; the environment is the one that `transformers` gives its templates."""

    def __init__(self, source: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(source)

    @classmethod
    def load(cls, directory: Path) -> ChatTemplate:
        """Read `directory`/chat_template.jinja, or the entry of an older tokenizer_config.json."""
        path = directory / "chat_template.jinja"
        if path.is_file():
            return cls(path.read_text(encoding="utf-8"))
        config = directory / "tokenizer_config.json"
        source = json.loads(config.read_text(encoding="utf-8")).get("chat_template") if config.is_file() else None
        if not isinstance(source, str):
            raise FileNotFoundError(f"{path} is missing and tokenizer_config.json holds no chat_template; add one")
        return cls(source)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **settings: Any,
    ) -> str:
        """The conversation as text. Tool arguments given as JSON text are decoded first, as the template expects."""
        settings |= {"messages": [decode_arguments(message) for message in messages], "tools": tools or None}
        try:
            return self._template.render(settings, add_generation_prompt=add_generation_prompt)
        except (TemplateError, TypeError, AttributeError) as error:
            raise TemplateRefusalError(f"the chat template refuses this conversation: {error}") from error


def decode_arguments(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message with each tool call's arguments as a mapping; text that is not a JSON object becomes an empty one."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    return {**message, "tool_calls": [_decode_call(call) for call in calls]}


def _decode_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function") or call
    return {**call, "function": {**function, "arguments": _arguments(function.get("arguments"))}}


def _arguments(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
