# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An answer of the Responses API as server-sent events: each item is added, filled piece by piece, and done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from nemo_gym_polar.dialects.deltas import pieces
from nemo_gym_polar.dialects.responses_answer import Item

Event = tuple[str, dict[str, Any]]


def encoded(kind: str, fields: dict[str, Any], number: int) -> bytes:
    data = orjson.dumps({"type": kind, **fields, "sequence_number": number})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def item_events(item: Item, index: int) -> Iterator[Event]:
    """All events of the output item at `index`."""
    yield "response.output_item.added", {"output_index": index, "item": _begun(item)}
    for kind, fields in _filling(item):
        yield kind, {"item_id": item["id"], "output_index": index, **fields}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _begun(item: Item) -> Item:
    """The item before anything is in it."""
    empty: Item = {"content": [], "summary": [], "arguments": "", "input": ""}
    begun = {key: empty.get(key, value) for key, value in item.items()}
    if item["type"] == "tool_search_call":
        begun["arguments"] = {}
    if "status" in item:
        begun["status"] = "in_progress"
    return begun


def _filling(item: Item) -> Iterator[Event]:
    match item["type"]:
        case "message":
            yield from _message(item["content"][0])
        case "reasoning" if item["summary"]:
            yield from _summary(item["summary"][0]["text"])
        case "reasoning":
            yield from _thinking(item["content"][0]["text"])
        case "function_call":
            for piece in pieces(item["arguments"]):
                yield "response.function_call_arguments.delta", {"delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", done
        case "custom_tool_call":
            for piece in pieces(item["input"]):
                yield "response.custom_tool_call_input.delta", {"delta": piece}
            yield "response.custom_tool_call_input.done", {"input": item["input"]}


def _message(part: dict[str, Any]) -> Iterator[Event]:
    at = {"content_index": 0}
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**at, "part": part}


def _summary(text: str) -> Iterator[Event]:
    at, part = {"summary_index": 0}, {"type": "summary_text", "text": text}
    yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(text):
        yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
    yield "response.reasoning_summary_text.done", {**at, "text": text}
    yield "response.reasoning_summary_part.done", {**at, "part": part}


def _thinking(text: str) -> Iterator[Event]:
    at, part = {"content_index": 0}, {"type": "reasoning_text", "text": text}
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(text):
        yield "response.reasoning_text.delta", {**at, "delta": piece}
    yield "response.reasoning_text.done", {**at, "text": text}
    yield "response.content_part.done", {**at, "part": part}
