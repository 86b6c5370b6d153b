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
ToolKind = Literal["function", "custom", "client"]


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
    """What the harness offers; `parameters` is its JSON schema.

    Models know functions only. `kind` and `namespace` say what the harness declared, so that a dialect can answer in
    its terms: a `custom` tool takes free text, which the model writes into the one parameter `input`; a `client` tool
    is one of the provider's own that the harness runs itself. A tool in a namespace has the name `namespace__name`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    kind: ToolKind = "function"
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling values; None means «not given». `max_tokens` bounds the answer, not the context.

    `schema` is the JSON schema that a structured output was asked to follow, `{}` for any JSON object.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the model reads: the history and the declared tools.

    `deferred` tools may be called but are not shown up front: the harness describes them in the history.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    deferred: tuple[Tool, ...] = ()

    @property
    def callable_tools(self) -> tuple[Tool, ...]:
        return self.tools + self.deferred


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed model call. `hints` are wire-level labels (lower-case header names) that tell sub-agents apart.

    `n` answers are wanted. `previous` names the answer that the conversation goes on from: its history comes before
    the messages of this request, without that history's own first `instructions` messages, which were for one call
    only. `stored` asks to keep the answer for later look-up. `array` streams a JSON array in place of events. `echo`
    holds what the dialect repeats in its answer.
    """

    dialect: Dialect
    model: str
    conversation: Conversation
    sampling: Sampling = Sampling()
    tool_choice: str = "auto"
    stream: bool = False
    stream_usage: bool = False
    array: bool = False
    n: int = 1
    previous: str | None = None
    instructions: int = 0
    stored: bool = False
    echo: Mapping[str, Any] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of tokens. `cached_tokens` are part of the prompt, `reasoning_tokens` of the completion."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer: the assistant message with the ids that the gateway minted. `stop` is the sequence that ended it."""

    message: Message
    finish_reason: FinishReason
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What a dialect answers with: as many choices as were asked for, the usage of all together."""

    id: str
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: Usage

    @property
    def first(self) -> Choice:
        return self.choices[0]
