# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The canonical conversation: what every dialect parses into and every engine reads.

Values are immutable, so a message can be shared by all turns whose history holds it. What a dialect cannot express
in these types travels as `Opaque`, so that it comes back out exactly as it came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Dialect = Literal["chat", "responses", "messages", "generate_content"]
FinishReason = Literal["stop", "tool_calls", "length", "abort"]


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking. `signature` and `encrypted` are the provider's opaque proofs, echoed unchanged."""

    text: str
    signature: str | None = None
    encrypted: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image by URL; inline images are `data:` URLs."""

    url: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. `arguments` is the text on the wire, verbatim: usually JSON, but a model may have written anything."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    parts: tuple[Text | Image, ...]
    is_error: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block of `dialect` that has no canonical form; `value` is its decoded JSON."""

    dialect: Dialect
    value: Any


Part = Text | Reasoning | Image | ToolCall | ToolResult | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the harness declares; `parameters` is its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling values; None means «not given». `max_tokens` bounds the answer, not the context."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the model reads: the history and the declared tools."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed model call. `hints` are wire-level labels (lower-case header names) that tell sub-agents apart."""

    dialect: Dialect
    model: str
    conversation: Conversation
    sampling: Sampling = Sampling()
    tool_choice: str = "auto"
    stream: bool = False
    stream_usage: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer ready for a dialect: the assistant message with the ids that the gateway minted."""

    id: str
    created: int
    model: str
    message: Message
    finish_reason: FinishReason
    usage: Usage
