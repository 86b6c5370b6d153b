# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Reading the conversation of a chat request, and rendering it to the prompt's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemo_gym_polar.engines.template import TemplateRefusalError
from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.fields import Fields
from nemo_gym_polar.policy.api.service import PolicyService

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_OURS = frozenset({"messages", "tools", "add_generation_prompt"})


def render_prompt(service: PolicyService, fields: Fields) -> list[int]:
    """The token ids of the conversation in `fields`, ready for an answer."""
    fields.refuse("chat_template", remedy="the server uses the model's own; leave it out")
    fields.refuse("continue_final_message", False, remedy="leave it false")
    settings = fields.section("chat_template_kwargs").mapping()
    if taken := _OURS & settings.keys():
        raise fields.wrong(
            "chat_template_kwargs", f"settings of the template; {sorted(taken)[0]} is a field of its own"
        )
    try:
        text = service.template.render(
            [_message(message, f"messages[{index}]") for index, message in enumerate(_messages(fields))],
            tools=read_tools(fields),
            add_generation_prompt=fields.flag("add_generation_prompt", default=True),
            **settings,
        )
    except TemplateRefusalError as error:
        raise ApiError(f"messages can't be rendered: {error}.", param="messages") from error
    return service.tokenizer.encode(text)


def read_tools(fields: Fields) -> list[dict[str, Any]]:
    """The declared tools, each {"type": "function", "function": {"name": …}}."""
    tools = fields.objects("tools")
    for index, tool in enumerate(tools):
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ApiError(f"tools[{index}].function.name is missing; declare each tool as a function.", param="tools")
    return tools


def _messages(fields: Fields) -> list[dict[str, Any]]:
    messages = fields.objects("messages")
    if not messages:
        raise fields.wrong("messages", "an array of at least one message")
    return messages


def _message(message: Mapping[str, Any], path: str) -> dict[str, Any]:
    fields = Fields(message, path)
    role = _ROLES.get(fields.required_text("role"))
    if role is None:
        raise fields.wrong("role", "system, developer, user, assistant or tool")
    _check_content(fields)
    rendered = {**message, "role": role}
    if role == "assistant":
        rendered["reasoning_content"] = fields.text("reasoning_content") or fields.text("reasoning")
        rendered["tool_calls"] = _tool_calls(fields)
    return rendered


def _check_content(fields: Fields) -> None:
    content = fields.get("content")
    if isinstance(content, list):
        for index, part in enumerate(fields.objects("content")):
            inner = Fields(part, fields.place(f"content[{index}]"))
            inner.refuse("type", "text", "input_text", "output_text", remedy="this model reads text only")
            inner.required_text("text")
    elif content is not None and not isinstance(content, str):
        raise fields.wrong("content", "text or an array of text parts")


def _tool_calls(fields: Fields) -> list[dict[str, Any]]:
    calls = fields.objects("tool_calls")
    for index, call in enumerate(calls):
        function = Fields(call, fields.place(f"tool_calls[{index}]")).section("function")
        function.required_text("name")
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str | dict):
            raise function.wrong("arguments", "JSON text or an object")
    return calls
