# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A trace as OpenAI Responses items that NeMo RL trains on.

NeMo RL reads one linear chain per rollout: each item with `generation_token_ids` is one sampled stretch, its
`prompt_token_ids` must begin with every token before it, and something must stand between two stretches. A trace
meets this when it is cut at the edges of its loss mask, so model calls that follow each other without a token between
share one item. Pure functions: nothing here imports NeMo Gym.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nemo_gym_polar.chat import Message, Text, ToolCall, ToolResult
from nemo_gym_polar.forest.trace import Trace

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One model call of a chain: what it read first (`context`), and what it said as tokens [start, end) of it."""

    answer: Message
    start: int
    end: int
    context: tuple[Message, ...] = ()


class TraceError(ValueError):
    """A trace that would be mistrained; the message says why."""


def output_items(trace: Trace, calls: Sequence[Call]) -> list[Item]:
    """`response.output` for `trace`, whose turns are `calls` in order.

    Tool results stand before the call that read them; the last item of each sampled stretch carries its tokens. A call
    that is context only (loss mask 0) gets items without tokens.
    """
    _check(trace)
    items: list[Item] = []
    ends = _stretch_of(trace, calls)
    for call in calls:
        items += _results(call.context)
        items += _answer(call.answer)
        if call.start < call.end and call.end in ends:
            items[-1] |= _tokens(trace, ends[call.end], call.end)
    return [_with_id(item, f"{trace.session_id}-{trace.index}-{n}") for n, item in enumerate(items)]


def response(trace: Trace, items: list[Item], *, model: str, created: float) -> dict[str, Any]:
    """A Responses object around `items`; usage counts the whole chain once."""
    sampled = trace.trained_tokens
    usage = {
        "input_tokens": len(trace) - sampled,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": sampled,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": len(trace),
    }
    return empty_response(model=model, created=created, identity=trace.session_id) | {"output": items, "usage": usage}


def empty_response(*, model: str, created: float, identity: str) -> dict[str, Any]:
    return {
        "id": f"resp_{identity}",
        "object": "response",
        "created_at": created,
        "model": model,
        "status": "completed",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _check(trace: Trace) -> None:
    lengths = {len(trace.token_ids), len(trace.loss_mask), len(trace.logprobs)}
    if len(lengths) != 1:
        raise _error(trace, f"token_ids, loss_mask and logprobs differ in length: {sorted(lengths)}")
    if not trace.loss_mask.any():
        raise _error(trace, "no token with loss mask 1")
    if trace.loss_mask[0]:
        raise _error(trace, "it begins with a sampled token, so its prompt is empty")
    if not np.isfinite(trace.logprobs[trace.loss_mask]).all():
        raise _error(trace, "a log-probability is not finite")


def _stretch_of(trace: Trace, calls: Sequence[Call]) -> dict[int, int]:
    """End → start of every maximal run of loss mask 1; the calls must cover the mask, each wholly in or out."""
    covered = np.zeros(len(trace), dtype=np.bool_)
    for call in calls:
        trained = trace.loss_mask[call.start : call.end]
        if trained.any() and not trained.all():
            raise _error(trace, f"tokens [{call.start}, {call.end}) are one answer, but only a part of it is trained")
        covered[call.start : call.end] = trained
    if not np.array_equal(covered, trace.loss_mask):
        where = int(np.flatnonzero(covered != trace.loss_mask)[0])
        raise _error(trace, f"token {where} has loss mask 1, but none of its calls sampled it")
    edges = np.flatnonzero(np.diff(trace.loss_mask.astype(np.int8), prepend=0, append=0)).tolist()
    return dict(zip(edges[1::2], edges[::2], strict=True))


def _error(trace: Trace, what: str) -> TraceError:
    return TraceError(f"trace {trace.index} of session {trace.session_id}: {what}")


def _tokens(trace: Trace, start: int, end: int) -> Mapping[str, list[Any]]:
    return {
        "prompt_token_ids": trace.token_ids[:start].tolist(),
        "generation_token_ids": trace.token_ids[start:end].tolist(),
        "generation_log_probs": trace.logprobs[start:end].tolist(),
    }


def _answer(message: Message) -> list[Item]:
    """Reasoning, text and calls of an answer; an answer without any of them is an empty message."""
    items: list[Item] = []
    if message.reasoning:
        items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": message.reasoning}]})
    if message.text or not (message.reasoning or message.tool_calls):
        items.append(_message(message.text))
    return items + [_function_call(call) for call in message.tool_calls]


def _message(text: str) -> Item:
    content = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [content]}


def _function_call(call: ToolCall) -> Item:
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _results(messages: Sequence[Message]) -> Iterator[Item]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                text = "".join(piece.text for piece in part.parts if isinstance(piece, Text))
                yield {"type": "function_call_output", "call_id": part.call_id, "output": text}


def _with_id(item: Item, identity: str) -> Item:
    prefix = {"reasoning": "rs", "message": "msg", "function_call": "fc", "function_call_output": "fco"}
    return {"id": f"{prefix[item['type']]}_{identity}"} | item
