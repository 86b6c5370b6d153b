# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A generateContent answer, whole or in chunks.

The client gets thinking only if it asked for thoughts, but the signature of the answer always holds it, and clients
send that back. It sits where Gemini puts it: on the first function call, else on the text; there on the first piece,
for clients that join pieces keep what the first one says. Function calls come whole, never in pieces. A call with
arguments that are no JSON object ends the answer as Google's own models end it: no call, and the text of it told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from nemo_gym_polar.chat import Choice, Completion, FinishReason, Message, Request, ToolCall, Usage
from nemo_gym_polar.dialects.deltas import pieces
from nemo_gym_polar.dialects.sealed import seal

THOUGHTS = "includeThoughts"
_FINISH: Mapping[FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "abort": "OTHER",
}
# Some clients end a line at these, where JSON does not.
_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))

Wire = dict[str, Any]


def answer(completion: Completion, request: Request) -> bytes:
    candidates = [_candidate(i, choice, request) for i, choice in enumerate(completion.choices)]
    return orjson.dumps({"candidates": candidates, "usageMetadata": _usage(completion.usage), **_identity(completion)})


def opening(response_id: str, created: int, request: Request) -> bytes:
    """Nothing: the first chunk already holds a part of the answer."""
    return b""


def stream(completion: Completion, request: Request) -> Iterable[bytes]:
    chunks: list[Wire] = [
        {"candidates": [candidate]}
        for index, choice in enumerate(completion.choices)
        for candidate in _pieces(index, choice, request)
    ]
    chunks[-1]["usageMetadata"] = _usage(completion.usage)
    encoded = (_encoded({**chunk, **_identity(completion)}) for chunk in chunks)
    return _array(encoded) if request.array else (b"data: " + chunk + b"\r\n\r\n" for chunk in encoded)


def _encoded(chunk: Mapping[str, Any]) -> bytes:
    data = orjson.dumps(chunk)
    for raw, escaped in _LINE_ENDS:
        data = data.replace(raw, escaped)
    return data


def _array(chunks: Iterable[bytes]) -> Iterator[bytes]:
    opening = b"["
    for chunk in chunks:
        yield opening + chunk
        opening = b",\r\n"
    yield b"]"


def _identity(completion: Completion) -> Wire:
    return {"modelVersion": completion.model, "responseId": completion.id}


def _candidate(index: int, choice: Choice, request: Request) -> Wire:
    return {"content": _content(_parts(choice.message, request)), **_end(choice), "index": index}


def _pieces(index: int, choice: Choice, request: Request) -> Iterator[Wire]:
    """A candidate per chunk; the last one says why the answer ends."""
    parts = [piece for part in _parts(choice.message, request) for piece in _cut(part)]
    last = parts.pop() if parts else None
    for part in parts:
        yield {"content": _content([part]), "index": index}
    yield {"content": _content([last] if last else []), **_end(choice), "index": index}


def _cut(part: Wire) -> Iterator[Wire]:
    """A text in pieces, its signature on the first."""
    texts = list(pieces(part["text"])) if part.get("text") else []
    if len(texts) < 2:
        yield part
        return
    yield {**part, "text": texts[0]}
    thought = {"thought": True} if "thought" in part else {}
    yield from ({"text": text, **thought} for text in texts[1:])


def _content(parts: list[Wire]) -> Wire:
    return {"parts": parts, "role": "model"} if parts else {"role": "model"}


def _end(choice: Choice) -> Wire:
    if malformed := _malformed(choice.message):
        said = "; ".join(f"{call.name}({call.arguments})" for call in malformed)
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": f"Malformed function call: {said}"}
    return {"finishReason": _FINISH[choice.finish_reason]}


def _parts(message: Message, request: Request) -> list[Wire]:
    if _malformed(message):
        return []
    said: list[Wire] = [{"text": message.text}] if message.text else []
    called = [_call(call) for call in message.tool_calls]
    thought: list[Wire] = []
    if message.reasoning:
        said = said if said or called else [{"text": ""}]
        signed = called[0] if called else said[0]
        signed["thoughtSignature"] = seal(message.reasoning)
        thought = [{"text": message.reasoning, "thought": True}] if request.echo.get(THOUGHTS) else []
    return [*thought, *said, *called]


def _malformed(message: Message) -> list[ToolCall]:
    return [call for call in message.tool_calls if _arguments(call) is None]


def _call(call: ToolCall) -> Wire:
    return {"functionCall": {"name": call.name, "args": _arguments(call), "id": call.id}}


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        value = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _usage(usage: Usage) -> Wire:
    """Absent counts are zero, as in all of Google's JSON; thinking is counted apart from the answer."""
    counts = {
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": usage.completion_tokens - usage.reasoning_tokens,
        "totalTokenCount": usage.prompt_tokens + usage.completion_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
    }
    text = [{"modality": "TEXT", "tokenCount": usage.prompt_tokens}]
    return {**{name: count for name, count in counts.items() if count}, "promptTokensDetails": text}
