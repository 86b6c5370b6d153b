# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Messages API, as `anthropic` and Claude Code speak it: paths and requests.

Fields that are not used are not looked at. `cache_control` has no meaning here, thinking budgets do not change how is
sampled, and tools that run at the provider are not offered to the model, for nobody here could run them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from nemo_gym_polar import chat as canonical
from nemo_gym_polar.chat import Conversation, Message, Request, Sampling, Text
from nemo_gym_polar.dialects import fields, messages_content, messages_tools
from nemo_gym_polar.dialects.base import CallError, Endpoint, Target
from nemo_gym_polar.dialects.messages_answer import answer, count, error, model, models, opening, stream
from nemo_gym_polar.dialects.recall import Recall

__all__ = [
    "CALL_ID_PREFIX",
    "KEEP_ALIVE",
    "NAME",
    "RESPONSE_ID_PREFIX",
    "answer",
    "count",
    "endpoint",
    "error",
    "model",
    "models",
    "opening",
    "owns",
    "parse",
    "stream",
]

NAME: Final[canonical.Dialect] = "messages"
RESPONSE_ID_PREFIX: Final = "msg_"
CALL_ID_PREFIX: Final = "toolu_"
KEEP_ALIVE: Final = b'event: ping\ndata: {"type": "ping"}\n\n'

_BILLING = "x-anthropic-billing-header:"
_READ = ("GET", "HEAD")
_ENDPOINTS: Mapping[str, Endpoint] = {
    "/v1/messages": Endpoint("generate", ("POST",)),
    "/v1/messages/count_tokens": Endpoint("count", ("POST",)),
    "/api/hello": Endpoint("hello", _READ),
}
_CHOICES: Mapping[str, str] = {"auto": "auto", "any": "required", "none": "none"}


def owns(target: Target) -> bool:
    return _ours(target) or target.path == "/v1/messages" or target.path.startswith("/v1/messages/")


def endpoint(target: Target) -> Endpoint | None:
    """The lists of models have the same path at OpenAI; a header tells them apart."""
    path = target.path
    if path.startswith("/v1/models") and _ours(target):
        name = path.removeprefix("/v1/models")
        if not name:
            return Endpoint("models", _READ)
        return Endpoint("model", _READ, model=name[1:]) if name.startswith("/") and len(name) > 1 else None
    return _ENDPOINTS.get(path)


def _ours(target: Target) -> bool:
    return "anthropic-version" in target.headers


def parse(body: bytes, endpoint: Endpoint, hints: Mapping[str, str], recall: Recall | None = None) -> Request:
    recall = recall or Recall()
    asked = fields.body(body)
    declared = recall.value(messages_tools.declared, asked.get("tools"))
    history = recall.history(messages_content.History(declared), _given(asked.get("messages")), "messages", declared)
    tools, deferred = declared.split(history.referred)
    return Request(
        dialect=NAME,
        model=fields.text(asked.get("model"), "model"),
        conversation=Conversation((*_system(asked.get("system")), *history.messages), tools, deferred),
        sampling=_sampling(asked, endpoint),
        tool_choice=_tool_choice(asked.get("tool_choice")),
        stream=fields.optional_bool(asked.get("stream"), "stream"),
        echo={"thinking_omitted": _omits_thinking(asked.get("thinking"))},
        hints=hints,
    )


# -- the conversation


def _system(value: object) -> Iterator[Message]:
    """One message of all blocks but Claude Code's billing header, which differs per session."""
    blocks = [value] if isinstance(value, str) else fields.array(value or [], "system")
    texts = [_system_text(block, f"system[{i}]") for i, block in enumerate(blocks)]
    said = [text for text in texts if text and not text.startswith(_BILLING)]
    if said:
        yield Message("system", (Text("\n\n".join(said)),))


def _system_text(value: object, path: str) -> str:
    return value if isinstance(value, str) else fields.text(fields.mapping(value, path).get("text"), f"{path}.text")


def _given(value: object) -> list[Any]:
    given = fields.array(value, "messages")
    if not given:
        raise CallError("invalid_request", "messages: at least one message is required", param="messages")
    return given


# -- sampling


def _sampling(asked: Mapping[str, Any], endpoint: Endpoint) -> Sampling:
    if endpoint.kind == "generate" and asked.get("max_tokens") is None:
        raise CallError("invalid_request", "max_tokens: Field required", param="max_tokens")
    return Sampling(
        temperature=fields.optional_number(asked.get("temperature"), "temperature"),
        top_p=fields.optional_number(asked.get("top_p"), "top_p"),
        top_k=fields.optional_integer(asked.get("top_k"), "top_k"),
        max_tokens=fields.optional_integer(asked.get("max_tokens"), "max_tokens", minimum=1),
        stop=_stop(asked.get("stop_sequences")),
        schema=_schema(asked),
    )


def _stop(value: object) -> tuple[str, ...]:
    given = fields.array(value or [], "stop_sequences")
    stops = tuple([fields.text(item, f"stop_sequences[{i}]") for i, item in enumerate(given)])
    if any(not stop.strip() for stop in stops):
        said = "stop_sequences: each stop sequence must contain non-whitespace"
        raise CallError("invalid_request", said, param="stop_sequences")
    return stops


def _schema(asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
    config = fields.mapping(asked.get("output_config") or {}, "output_config")
    for holder, name, path in ((config, "format", "output_config.format"), (asked, "output_format", "output_format")):
        wanted = fields.mapping(holder.get(name) or {}, path)
        if wanted.get("type") == "json_schema":
            return fields.mapping(wanted.get("schema"), f"{path}.schema")
    return None


def _tool_choice(value: object) -> str:
    """«auto», «none», «required», or «function:NAME»."""
    choice = fields.mapping(value or {"type": "auto"}, "tool_choice")
    kind = choice.get("type")
    if kind == "tool":
        return f"function:{fields.text(choice.get('name'), 'tool_choice.name')}"
    if isinstance(kind, str) and kind in _CHOICES:
        return _CHOICES[kind]
    said = f"Invalid 'tool_choice.type': {kind!r}; send 'auto', 'any', 'tool' or 'none'."
    raise CallError("invalid_request", said, param="tool_choice.type")


def _omits_thinking(value: object) -> bool:
    """Whether the harness wants the proof of thinking without its text."""
    return fields.mapping(value or {}, "thinking").get("display") == "omitted"
