# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The Chat Completions API, as `openai`, Pi, Qwen Code and OpenCode speak it.

Fields that are not used are not looked at, so an unknown one never breaks a call. Reasoning travels in
`reasoning_content`, which all three agents read and send back. Tool arguments are passed on as the text that was
sampled, valid JSON or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Final, Self

import orjson

from nemo_gym_polar import chat as canonical
from nemo_gym_polar.chat import (
    Choice,
    Completion,
    Conversation,
    FinishReason,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from nemo_gym_polar.dialects import fields, freeform, openai_common
from nemo_gym_polar.dialects.base import CallError, Endpoint, Target
from nemo_gym_polar.dialects.deltas import pieces
from nemo_gym_polar.dialects.recall import Recall

NAME: Final[canonical.Dialect] = "chat"
RESPONSE_ID_PREFIX: Final = "chatcmpl-"
CALL_ID_PREFIX: Final = "call_"
KEEP_ALIVE: Final = b": keep-alive\n\n"
MAX_CHOICES: Final = 128

_GENERATE = Endpoint("generate", ("POST",))
_MODELS = Endpoint("models", ("GET", "HEAD"))
_FINISH: Mapping[FinishReason, str] = {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "abort": "stop"}

error = openai_common.error
models = openai_common.models
model = openai_common.model
count = openai_common.count


def owns(target: Target) -> bool:
    return target.path.startswith("/v1/")


def endpoint(target: Target) -> Endpoint | None:
    path = target.path
    if path == "/v1/chat/completions":
        return _GENERATE
    if path == "/v1/models":
        return _MODELS
    if path.startswith("/v1/models/"):
        return Endpoint("model", ("GET", "HEAD"), model=path.removeprefix("/v1/models/"))
    return None


# -- requests


def parse(body: bytes, endpoint: Endpoint, hints: Mapping[str, str], recall: Recall | None = None) -> Request:
    recall = recall or Recall()
    fields_ = fields.body(body)
    messages = fields.array(fields_.get("messages"), "messages")
    if not messages:
        raise CallError("invalid_request", "'messages' is empty; send at least one message.", param="messages")
    options = fields.mapping(fields_.get("stream_options") or {}, "stream_options")
    return Request(
        dialect=NAME,
        model=fields.text(fields_.get("model"), "model"),
        conversation=Conversation(
            messages=tuple(recall.history(_History(), messages, "messages").messages),
            tools=recall.value(_tools, fields_.get("tools")),
        ),
        sampling=_sampling(fields_),
        tool_choice=_tool_choice(fields_.get("tool_choice")),
        stream=fields.optional_bool(fields_.get("stream"), "stream"),
        stream_usage=fields.optional_bool(options.get("include_usage"), "stream_options.include_usage"),
        n=fields.optional_integer(fields_.get("n"), "n", minimum=1, maximum=MAX_CHOICES) or 1,
        hints=hints,
    )


class _History:
    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages = list(messages)

    def read(self, item: Any, path: str) -> None:
        self.messages.append(_message(item, path))

    def copy(self) -> Self:
        return type(self)(self.messages)


def _message(value: object, path: str) -> Message:
    message = fields.mapping(value, path)
    role = message.get("role")
    if role == "assistant":
        return Message("assistant", tuple(_assistant_parts(message, path)))
    if role == "tool" or role == "function":
        return Message("tool", (_tool_result(message, path),))
    content = tuple(_content(message.get("content"), f"{path}.content"))
    if role == "user":
        return Message("user", content)
    if role == "system" or role == "developer":
        return Message("system", content)
    known = "'system', 'developer', 'user', 'assistant' or 'tool'"
    raise CallError("invalid_request", f"Invalid '{path}.role': {role!r}; send {known}.", param=f"{path}.role")


def _content(value: object, path: str) -> Iterator[Text | Image | Opaque]:
    if isinstance(value, str):
        if value:
            yield Text(value)
    elif value is not None:
        for i, part in enumerate(fields.array(value, path)):
            yield _content_part(part, f"{path}[{i}]")


def _content_part(value: object, path: str) -> Text | Image | Opaque:
    if isinstance(value, str):
        return Text(value)
    part = fields.mapping(value, path)
    match part.get("type"):
        case "text":
            return Text(fields.text(part.get("text"), f"{path}.text"))
        case "image_url":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else image
            return Image(fields.text(url, f"{path}.image_url.url"))
    return Opaque(NAME, part)


def _assistant_parts(message: Mapping[str, Any], path: str) -> Iterator[Part]:
    for name in ("reasoning_content", "reasoning"):
        if reasoning := fields.optional_text(message.get(name), f"{path}.{name}"):
            yield Reasoning(reasoning)
            break
    yield from _content(message.get("content"), f"{path}.content")
    for i, call in enumerate(fields.array(message.get("tool_calls") or [], f"{path}.tool_calls")):
        yield _tool_call(call, f"{path}.tool_calls[{i}]")


def _tool_call(value: object, path: str) -> ToolCall | Opaque:
    call = fields.mapping(value, path)
    if "custom" in call:
        return _custom_call(call, path)
    if "function" not in call:
        return Opaque(NAME, call)
    function = fields.mapping(call["function"], f"{path}.function")
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        arguments = orjson.dumps(arguments).decode()
    return ToolCall(
        id=fields.optional_text(call.get("id"), f"{path}.id") or "",
        name=fields.text(function.get("name"), f"{path}.function.name"),
        arguments=fields.optional_text(arguments, f"{path}.function.arguments") or "",
    )


def _custom_call(call: Mapping[str, Any], path: str) -> ToolCall:
    custom = fields.mapping(call["custom"], f"{path}.custom")
    return ToolCall(
        id=fields.optional_text(call.get("id"), f"{path}.id") or "",
        name=fields.text(custom.get("name"), f"{path}.custom.name"),
        arguments=freeform.arguments(fields.optional_text(custom.get("input"), f"{path}.custom.input") or ""),
    )


def _tool_result(message: Mapping[str, Any], path: str) -> ToolResult:
    parts = _content(message.get("content"), f"{path}.content")
    return ToolResult(
        call_id=fields.optional_text(message.get("tool_call_id"), f"{path}.tool_call_id") or "",
        parts=tuple([Text(_json(part.value)) if isinstance(part, Opaque) else part for part in parts]),
        name=fields.optional_text(message.get("name"), f"{path}.name"),
    )


def _tools(value: object) -> tuple[Tool, ...]:
    tools = fields.array(value or [], "tools")
    return tuple([tool for i, item in enumerate(tools) if (tool := _tool(item, f"tools[{i}]")) is not None])


def _tool(value: object, path: str) -> Tool | None:
    """A declared function; other kinds of tools run at the provider, and there is none here to run them."""
    declared = fields.mapping(value, path)
    if declared.get("type") == "custom":
        custom = fields.mapping(declared.get("custom"), f"{path}.custom")
        return freeform.tool(custom, f"{path}.custom")
    if "function" not in declared:
        return None
    function = fields.mapping(declared["function"], f"{path}.function")
    return Tool(
        name=fields.text(function.get("name"), f"{path}.function.name"),
        description=fields.optional_text(function.get("description"), f"{path}.function.description") or "",
        parameters=fields.mapping(function.get("parameters") or {}, f"{path}.function.parameters"),
    )


def _tool_choice(value: object) -> str:
    """«auto», «none», «required», or «function:NAME»."""
    if value is None:
        return "auto"
    if isinstance(value, dict):
        function = value.get("function")
        function = value.get("custom") if function is None else function
        name = function.get("name") if isinstance(function, dict) else None
        return f"function:{name}" if isinstance(name, str) else "auto"
    return fields.text(value, "tool_choice")


def _sampling(body: Mapping[str, Any]) -> Sampling:
    limit = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    return Sampling(
        temperature=fields.optional_number(body.get("temperature"), "temperature"),
        top_p=fields.optional_number(body.get("top_p"), "top_p"),
        top_k=fields.optional_integer(body.get("top_k"), "top_k"),
        max_tokens=fields.optional_integer(body.get(limit), limit, minimum=1),
        stop=_stop(body.get("stop")),
        seed=fields.optional_integer(body.get("seed"), "seed"),
        schema=_schema(body.get("response_format")),
    )


def _schema(value: object) -> Mapping[str, Any] | None:
    wanted = fields.mapping(value or {}, "response_format")
    match wanted.get("type"):
        case "json_object":
            return {}
        case "json_schema":
            schema = fields.mapping(wanted.get("json_schema"), "response_format.json_schema")
            return fields.mapping(schema.get("schema") or {}, "response_format.json_schema.schema")
    return None


def _stop(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple([fields.text(item, f"stop[{i}]") for i, item in enumerate(fields.array(value, "stop"))])


# -- answers


def answer(completion: Completion, request: Request) -> bytes:
    custom = freeform.names(request)
    return orjson.dumps(
        {
            "id": completion.id,
            "object": "chat.completion",
            "created": completion.created,
            "model": completion.model,
            "choices": [
                {
                    "index": index,
                    "message": _answer_message(choice.message, custom),
                    "logprobs": None,
                    "finish_reason": _FINISH[choice.finish_reason],
                }
                for index, choice in enumerate(completion.choices)
            ],
            "usage": _usage(completion.usage),
            "system_fingerprint": None,
        }
    )


def _answer_message(message: Message, custom: Set[str]) -> dict[str, Any]:
    calls = [_answer_call(call, custom) for call in message.tool_calls]
    wire: dict[str, Any] = {"role": "assistant", "content": message.text or (None if calls else ""), "refusal": None}
    if reasoning := message.reasoning:
        wire["reasoning_content"] = reasoning
    if calls:
        wire["tool_calls"] = calls
    return wire


def _answer_call(call: ToolCall, custom: Set[str]) -> dict[str, Any]:
    if call.name in custom:
        said = {"name": call.name, "input": freeform.text(call.arguments)}
        return {"id": call.id, "type": "custom", "custom": said}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def opening(response_id: str, created: int, request: Request) -> bytes:
    """Nothing: every chunk carries what a first one could say."""
    return b""


def stream(completion: Completion, request: Request) -> Iterable[bytes]:
    head = {
        "id": completion.id,
        "object": "chat.completion.chunk",
        "created": completion.created,
        "model": completion.model,
        "system_fingerprint": None,
    }
    if request.stream_usage:
        head["usage"] = None
    custom = freeform.names(request)
    for index, choice in enumerate(completion.choices):
        yield from _choice_events(head, index, choice, custom)
    if request.stream_usage:
        yield b"data: " + orjson.dumps({**head, "choices": [], "usage": _usage(completion.usage)}) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _choice_events(head: Mapping[str, Any], index: int, choice: Choice, custom: Set[str]) -> Iterator[bytes]:
    """All chunks share their head, so it is encoded once and each chunk only appends its choice."""
    prefix = b"data: " + orjson.dumps(head)[:-1] + b',"choices":[{"index":%d,"logprobs":null,"delta":' % index
    for delta in _deltas(choice.message, custom):
        yield prefix + orjson.dumps(delta) + b',"finish_reason":null}]}\n\n'
    yield prefix + b'{},"finish_reason":' + orjson.dumps(_FINISH[choice.finish_reason]) + b"}]}\n\n"


def _deltas(message: Message, custom: Set[str]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(message.reasoning):
        yield {"reasoning_content": piece}
    for piece in pieces(message.text):
        yield {"content": piece}
    for index, call in enumerate(message.tool_calls):
        kind, field, said = ("function", "arguments", call.arguments)
        if call.name in custom:
            kind, field, said = ("custom", "input", freeform.text(call.arguments))
        opening = {"name": call.name, field: ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": kind, kind: opening}]}
        for piece in pieces(said):
            yield {"tool_calls": [{"index": index, kind: {field: piece}}]}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
