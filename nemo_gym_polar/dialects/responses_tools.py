# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tools as the Responses API declares them.

A namespace is a group of functions; to the policy they are plain functions named `namespace__name`. Tools that run at
the provider (web search, code interpreter, …) are left out: nothing here can run them. Tool search is kept where the
client runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nemo_gym_polar.chat import Tool
from nemo_gym_polar.dialects import fields, freeform

TOOL_SEARCH = "tool_search"


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool; `hidden` if it is to be shown only when a search finds it."""

    tool: Tool
    hidden: bool = False


def declared(value: object, path: str) -> list[Declared]:
    return list(_declared(fields.array([] if value is None else value, path), path, None))


def split(found: list[Declared]) -> tuple[tuple[Tool, ...], tuple[Tool, ...]]:
    """Tools to show up front, and hidden ones; without a search that could find them all are shown."""
    if not any(entry.tool.kind == "client" for entry in found):
        return tuple([entry.tool for entry in found]), ()
    shown = tuple([entry.tool for entry in found if not entry.hidden])
    return shown, tuple([entry.tool for entry in found if entry.hidden])


def _declared(items: list[Any], path: str, namespace: str | None) -> Iterator[Declared]:
    for i, item in enumerate(items):
        at = f"{path}[{i}]"
        tool = fields.mapping(item, at)
        hidden = tool.get("defer_loading") is True
        match tool.get("type"):
            case "function":
                yield Declared(_function(tool, at, namespace), hidden)
            case "custom":
                yield Declared(freeform.tool(tool, at, namespace), hidden)
            case "namespace" if namespace is None:
                name = fields.text(tool.get("name"), f"{at}.name")
                yield from _declared(fields.array(tool.get("tools") or [], f"{at}.tools"), f"{at}.tools", name)
            case "tool_search" if tool.get("execution") == "client":
                yield Declared(_search(tool, at))


def _function(tool: Mapping[str, Any], path: str, namespace: str | None) -> Tool:
    return Tool(
        name=full_name(fields.text(tool.get("name"), f"{path}.name"), namespace),
        description=fields.optional_text(tool.get("description"), f"{path}.description") or "",
        parameters=fields.mapping(tool.get("parameters") or {}, f"{path}.parameters"),
        namespace=namespace,
    )


def _search(tool: Mapping[str, Any], path: str) -> Tool:
    return Tool(
        name=TOOL_SEARCH,
        description=fields.optional_text(tool.get("description"), f"{path}.description") or "",
        parameters=fields.mapping(tool.get("parameters") or {}, f"{path}.parameters"),
        kind="client",
    )


def full_name(name: str, namespace: str | None) -> str:
    """The name that the policy knows a tool by."""
    return f"{namespace}__{name}" if namespace else name


def echoed(value: object) -> list[Any]:
    """`tools` as the API repeats them in its answer, defaults filled in."""
    return [_echoed(tool) for tool in value] if isinstance(value, list) else []


def _echoed(tool: Any) -> Any:
    if isinstance(tool, dict) and tool.get("type") == "function":
        return {"description": None, "parameters": None, "strict": True, **tool}
    return tool
