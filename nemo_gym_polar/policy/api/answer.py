# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""From sampled tokens to an assistant message: reasoning, content, and tool calls in the qwen3_coder form.

A tool call that can't be parsed stays in the content, so that the harness sees what the policy wrote.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nemo_gym_polar.engines.written_calls import arguments_text
from nemo_gym_polar.policy.api.service import PolicyService

# A value that is no JSON though its schema wants one is passed on as text, as vLLM does it.
_USABLE = ("ok", "invalid_json")


@dataclass(frozen=True, slots=True)
class Answer:
    """An assistant message. `tool_calls` are on the wire as they are here."""

    content: str
    reasoning: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)

    def message(self) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": self.content or None,
            "reasoning": self.reasoning or None,
            "tool_calls": self.tool_calls,
            "refusal": None,
        }


def read_answer(
    service: PolicyService,
    tokens: Sequence[int],
    *,
    prompt: Sequence[int],
    tools: list[dict[str, Any]],
    stopped_at: str | None = None,
) -> Answer:
    """Parse an answer. `stopped_at` is the stop string that ended it; text from there on is not part of it."""
    parsed = service.parser.parse(tokens, prompt=prompt, tools=tools)
    content = parsed.content
    calls = [call for call in parsed.tool_calls if call.status in _USABLE] if tools else []
    if parsed.tool_calls and not calls:
        content = _after_reasoning(service, tokens, reasoned=parsed.reasoning_content is not None)
    return Answer(
        content=_cut(content, stopped_at),
        reasoning=_cut((parsed.reasoning_content or "").strip(), stopped_at),
        tool_calls=[tool_call(call.name, arguments_text(call.raw, call.arguments)) for call in calls],
    )


def tool_call(name: str, arguments: str) -> dict[str, Any]:
    identity = f"chatcmpl-tool-{uuid.uuid4().hex}"
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _after_reasoning(service: PolicyService, tokens: Sequence[int], *, reasoned: bool) -> str:
    """All text that was written after the reasoning, tool-call markers included."""
    marks = service.markers
    ended = [index for index, token in enumerate(tokens) if token in (marks.turn_end, marks.text_end)]
    kept = list(tokens[: ended[0]] if ended else tokens)
    if reasoned:
        closed = marks.think_end in kept
        kept = kept[kept.index(marks.think_end) + 1 :] if closed else kept[kept.index(marks.tool_call) :]
    return service.tokenizer.decode(kept, skip_special_tokens=False).strip()


def _cut(text: str, stop: str | None) -> str:
    return text if stop is None else text.partition(stop)[0]
