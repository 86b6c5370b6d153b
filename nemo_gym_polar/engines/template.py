# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Renders conversations with the Jinja chat template of a model directory, without importing `transformers`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class TemplateRefusalError(ValueError):
    """The template does not accept the conversation; the message is the template's own."""


class _Generation(Extension):
    """`{% generation %}` marks what the model says, for those who mask; here it is only what it encloses."""

    tags = {"generation"}  # noqa: RUF012  # as the base class has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """A compiled chat template; the environment is the one that `transformers` gives its templates."""

    def __init__(self, source: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        # Some prompts name the day. It is that of the start, so that no conversation changes at midnight.
        environment.globals["strftime_now"] = datetime.now(UTC).strftime
        self.source = source
        self._template = environment.from_string(source)

    @classmethod
    def load(cls, directory: Path) -> ChatTemplate:
        """Read `directory`/chat_template.jinja, or the entry of an older tokenizer_config.json."""
        source = template_source(directory)
        if source is None:
            path = directory / "chat_template.jinja"
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


def template_source(directory: Path) -> str | None:
    """The Jinja text of a model's chat template, if its directory has one."""
    path = directory / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    config = directory / "tokenizer_config.json"
    found = json.loads(config.read_text(encoding="utf-8")).get("chat_template") if config.is_file() else None
    if isinstance(found, list):  # several by name
        found = next((entry.get("template") for entry in found if entry.get("name") == "default"), None)
    return found if isinstance(found, str) else None


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


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
