# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Answers of the Messages API: whole, as events, and as errors."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from nemo_gym_polar.chat import (
    Choice,
    Completion,
    FinishReason,
    Opaque,
    Part,
    Reasoning,
    Request,
    Text,
    ToolCall,
    Usage,
)
from nemo_gym_polar.dialects import sealed
from nemo_gym_polar.dialects.base import CallError, ErrorKind
from nemo_gym_polar.dialects.deltas import pieces
from nemo_gym_polar.dialects.unparsed import as_object

_STOP: Mapping[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "abort": "end_turn",
}
_ERROR: Mapping[ErrorKind, str] = {
    "authentication": "authentication_error",
    "not_found": "not_found_error",
    "model_not_found": "not_found_error",
    "too_large": "request_too_large",
    "rate_limit": "rate_limit_error",
    "server": "api_error",
}
_OVERLOADED = frozenset({503, 529})
_TIMEOUT = 504
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"


# -- whole


def answer(completion: Completion, request: Request) -> bytes:
    choice = completion.first
    body = _head(completion) | {
        "content": [_block(part, request) for part in choice.message.parts if _speaks(part)],
        **_stop(choice),
        "usage": _usage(completion.usage),
    }
    return orjson.dumps(body)


def _head(completion: Completion) -> dict[str, Any]:
    return {"id": completion.id, "type": "message", "role": "assistant", "model": completion.model}


def _stop(choice: Choice) -> dict[str, Any]:
    if choice.stop is not None and choice.finish_reason == "stop":
        return {"stop_reason": "stop_sequence", "stop_sequence": choice.stop}
    return {"stop_reason": _STOP[choice.finish_reason], "stop_sequence": None}


def _speaks(part: Part) -> bool:
    """Providers send no empty text."""
    return not isinstance(part, Text) or bool(part.text)


def _block(part: Part, request: Request) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text, "citations": None}
        case Reasoning():
            return {"type": "thinking", "thinking": _thought(part, request), "signature": _signature(part)}
        case ToolCall(id_, name, arguments):
            return {"type": "tool_use", "id": id_, "name": name, "input": as_object(arguments)}
        case Opaque(_, value):
            return dict(value)
    raise TypeError(f"an answer can't hold {part!r:.80}")


def _thought(part: Reasoning, request: Request) -> str:
    return "" if request.echo.get("thinking_omitted") else part.text


def _signature(part: Reasoning) -> str:
    return part.signature or sealed.seal(part.text)


def _usage(usage: Usage) -> dict[str, Any]:
    """What is read from a cache is not counted as input; all three together are the prompt."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "service_tier": "standard",
    }


# -- events


def opening(response_id: str, created: int, request: Request) -> bytes:
    """Nothing: the first event says how long the prompt is, which is not known yet. Pings may come before it."""
    return b""


def stream(completion: Completion, request: Request) -> Iterable[bytes]:
    choice = completion.first
    usage = _usage(completion.usage)
    opening = _head(completion) | {"content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**opening, "usage": {**usage, "output_tokens": 1}})
    yield _event("ping")
    for index, part in enumerate(part for part in choice.message.parts if _speaks(part)):
        yield from _block_events(index, part, request)
    final = {name: usage[name] for name in usage if name.endswith(("tokens", "details"))}
    yield _event("message_delta", delta=_stop(choice), usage=final)
    yield _event("message_stop")


def _block_events(index: int, part: Part, request: Request) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=_opening(part))
    for delta in _deltas(part, request):
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _opening(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": ""}
        case Reasoning():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolCall(id_, name, _):
            return {"type": "tool_use", "id": id_, "name": name, "input": {}}
        case Opaque(_, value):
            return dict(value)
    raise TypeError(f"an answer can't hold {part!r:.80}")


def _deltas(part: Part, request: Request) -> Iterator[dict[str, Any]]:
    match part:
        case Text(text):
            for piece in pieces(text):
                yield {"type": "text_delta", "text": piece}
        case Reasoning():
            for piece in pieces(_thought(part, request)):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": _signature(part)}
        case ToolCall(_, _, arguments):
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pieces(arguments):
                yield {"type": "input_json_delta", "partial_json": piece}


def _event(kind: str, **content: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **content}))


# -- counts, models and errors


def count(tokens: int) -> bytes:
    return orjson.dumps({"input_tokens": tokens})


def models(names: Sequence[str]) -> bytes:
    data = [_model(name) for name in names]
    first, last = (names[0], names[-1]) if names else (None, None)
    return orjson.dumps({"data": data, "has_more": False, "first_id": first, "last_id": last})


def model(name: str) -> bytes:
    return orjson.dumps(_model(name))


def _model(name: str) -> dict[str, Any]:
    known = {"type": "model", "id": name, "display_name": name}
    return {**known, "created_at": _UNKNOWN_DATE, "lifecycle": "active"}


def error(failure: CallError) -> bytes:
    said = {"type": _error_type(failure), "message": _error_message(failure)}
    return orjson.dumps({"type": "error", "error": said, "request_id": f"req_{secrets.token_hex(12)}"})


def _error_type(failure: CallError) -> str:
    if failure.status in _OVERLOADED:
        return "overloaded_error"
    if failure.status == _TIMEOUT:
        return "timeout_error"
    return _ERROR.get(failure.kind, "invalid_request_error")


def _error_message(failure: CallError) -> str:
    """Claude Code makes room for more when it reads these words."""
    if failure.kind != "context_overflow":
        return failure.message
    if failure.asked is None or failure.limit is None:
        return f"prompt is too long: {failure.message}"
    return f"prompt is too long: {failure.asked} tokens > {failure.limit} maximum"
