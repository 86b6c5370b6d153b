# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An answer of the Responses API: one object with an output item for each thing that was thought, said or called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import orjson

from nemo_gym_polar.chat import Completion, Message, Part, Reasoning, Request, Text, Tool, ToolCall, Usage
from nemo_gym_polar.dialects import freeform, sealed

Item = dict[str, Any]
Thinking = Literal["summary", "content"]
PREFIX = "resp_"


def response(response_id: str, created: int, request: Request) -> dict[str, Any]:
    """The response object before there is an answer: in progress, with the request's own fields repeated."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": request.model,
        "output": [],
        **request.echo["fields"],
        "usage": None,
    }


def finished(completion: Completion, request: Request, output: list[Any]) -> dict[str, Any]:
    """The response object with the answer in it."""
    cut = is_cut(completion)
    return {
        **response(completion.id, completion.created, request),
        "model": completion.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "usage": _usage(completion.usage),
    }


def is_cut(completion: Completion) -> bool:
    return completion.first.finish_reason == "length"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def items(completion: Completion, request: Request) -> list[Item]:
    """The output; an answer that says nothing is an empty message, so that the harness has something to repeat."""
    message = completion.first.message
    tools = {tool.name: tool for tool in request.conversation.callable_tools} if message.tool_calls else {}
    suffix = completion.id.removeprefix(PREFIX)
    found = [_item(part, f"{suffix}{i:02d}", request, tools) for i, part in enumerate(_spoken(message))]
    made = [item for item in found if item is not None]
    if is_cut(completion) and made and "status" in made[-1]:
        made[-1]["status"] = "incomplete"
    return made


def _spoken(message: Message) -> Iterator[Part]:
    yield from message.parts
    if not any(isinstance(part, Text | ToolCall) for part in message.parts):
        yield Text("")


def _item(part: Part, suffix: str, request: Request, tools: Mapping[str, Tool]) -> Item | None:
    match part:
        case Reasoning(text):
            return _reasoning(text, suffix, request)
        case Text(text):
            content = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]
            return {
                "id": f"msg_{suffix}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": content,
            }
        case ToolCall():
            return _call(part, suffix, tools.get(part.name))
    return None


def _reasoning(text: str, suffix: str, request: Request) -> Item:
    """The thinking stands where the harness looks for it: in the summary if it asked for one, else in the content."""
    item: Item = {"id": f"rs_{suffix}", "type": "reasoning", "summary": []}
    if request.echo["thinking"] == "summary":
        item["summary"] = [{"type": "summary_text", "text": text}]
    else:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    if request.echo["sealed"]:
        item["encrypted_content"] = sealed.seal(text)
    return item


def _call(call: ToolCall, suffix: str, tool: Tool | None) -> Item:
    kind = tool.kind if tool else "function"
    if kind == "client":
        return _client_call(call, suffix)
    item: Item = {"status": "completed", "call_id": call.id, "name": call.name}
    if tool and tool.namespace:
        item["name"] = call.name.removeprefix(f"{tool.namespace}__")
        item["namespace"] = tool.namespace
    if kind == "custom":
        return {"id": f"ctc_{suffix}", "type": "custom_tool_call", **item, "input": freeform.text(call.arguments)}
    return {"id": f"fc_{suffix}", "type": "function_call", **item, "arguments": call.arguments}


def _client_call(call: ToolCall, suffix: str) -> Item:
    return {
        "id": f"tsc_{suffix}",
        "type": "tool_search_call",
        "execution": "client",
        "call_id": call.id,
        "status": "completed",
        "arguments": _decoded(call.arguments),
    }


def _decoded(arguments: str) -> Any:
    """Arguments as JSON; what is none goes out as the text that it is."""
    try:
        return orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments
