# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tools of the Messages API: declared up front, or deferred until a search finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from nemo_gym_polar.chat import Tool
from nemo_gym_polar.dialects import fields

# Anthropic's own tools that the harness runs; models outside Anthropic have to be told what they take.
_BASH = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "The command to run; required unless restarting."},
        "restart": {"type": "boolean", "description": "Start the shell anew."},
    },
}
_EDITOR = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert", "undo_edit"]},
        "path": {"type": "string", "description": "Absolute path to a file or directory."},
        "file_text": {"type": "string", "description": "The content for create."},
        "old_str": {"type": "string", "description": "The text that str_replace looks for; must occur once."},
        "new_str": {"type": "string", "description": "The text that str_replace or insert puts there."},
        "insert_line": {"type": "integer", "description": "The line that insert writes after."},
        "insert_text": {"type": "string", "description": "The text that insert puts there."},
        "view_range": {"type": "array", "items": {"type": "integer"}, "description": "First and last line to view."},
    },
    "required": ["command", "path"],
}
_CLIENT: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "bash_": ("Run commands in a shell that keeps its state.", _BASH),
    "text_editor_": ("View, create and edit files.", _EDITOR),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """All tools in the order they came in, and the names of those that are not to be shown up front."""

    all: Sequence[Tool]
    hidden: frozenset[str]

    def split(self, referred: frozenset[str]) -> tuple[tuple[Tool, ...], tuple[Tool, ...]]:
        """What the model sees up front, and what it can call besides.

        A tool that the history describes counts as deferred, whatever its flag says: shown once is enough, and the
        tools up front have to stay the same for the prompt to stay the same.
        """
        later = self.hidden | referred
        shown_first = tuple(tool for tool in self.all if tool.name not in later)
        return shown_first, tuple(tool for tool in self.all if tool.name in later)


def declared(value: object) -> Declared:
    tools: list[Tool] = []
    hidden: set[str] = set()
    for i, item in enumerate(fields.array(value or [], "tools")):
        path = f"tools[{i}]"
        entry = fields.mapping(item, path)
        tool = _tool(entry, path)
        if tool is None:
            continue
        tools.append(tool)
        if fields.optional_bool(entry.get("defer_loading"), f"{path}.defer_loading"):
            hidden.add(tool.name)
    return Declared(tools, frozenset(hidden))


def _tool(entry: Mapping[str, Any], path: str) -> Tool | None:
    """A tool that the harness runs; None for one that would run at the provider."""
    kind = fields.optional_text(entry.get("type"), f"{path}.type") or "custom"
    if kind == "custom":
        return Tool(
            name=fields.text(entry.get("name"), f"{path}.name"),
            description=fields.optional_text(entry.get("description"), f"{path}.description") or "",
            parameters=fields.mapping(entry.get("input_schema"), f"{path}.input_schema"),
        )
    for prefix, (description, schema) in _CLIENT.items():
        if kind.startswith(prefix):
            return Tool(fields.text(entry.get("name"), f"{path}.name"), description, schema, kind="client")
    return None


def shown(tool: Tool) -> str:
    """A deferred tool, described in the history."""
    described = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return f"<tool>\n{orjson.dumps(described).decode()}\n</tool>"
