# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Messages to tokens and back, for tokens mode.

A first prompt is rendered whole. A continuation keeps the tokens that the policy read and sampled and adds only the
encoding of what is new, so its context is exact by construction; where the renderer can't promise that, there is no
continuation. `renderers` knows the model families; it is imported when a model is loaded, not when this module is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nemo_gym_polar.chat import Conversation, Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.engines import openai_wire
from nemo_gym_polar.engines.agreement import agree
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.families import History, make_renderer
from nemo_gym_polar.engines.tokenizer import FileTokenizer
from nemo_gym_polar.engines.written_calls import arguments_text
from nemo_gym_polar.tokens import Int32

_OPENING = 64  # tokens; more than any format needs to open an assistant turn
_LONG = 16_000  # characters; a longer prompt is rendered in a thread, so that it holds up no other call


class ParsedCall(Protocol):
    """One attempt at a tool call; `name` is None where it can't be read."""

    raw: str
    name: str | None
    arguments: dict[str, Any] | str | None
    token_span: tuple[int, int] | None


class Parsed(Protocol):
    content: str
    reasoning_content: str | None
    tool_calls: list[Any]


class Bridged(Protocol):
    token_ids: list[int]


class Renderer(Protocol):
    """What is used of a `renderers` renderer, which ships without types."""

    def render_ids(
        self, messages: list[dict[str, Any]], *, tools: list[dict[str, Any]] | None, add_generation_prompt: bool
    ) -> list[int]: ...

    def parse_response(
        self, token_ids: list[int], *, tools: list[dict[str, Any]] | None, prompt_ids: list[int]
    ) -> Parsed: ...

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: list[int],
        previous_completion_ids: list[int],
        new_messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None,
    ) -> Bridged | None: ...

    def get_stop_token_ids(self) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Source:
    """What a rendering was made from."""

    directory: Path
    renderer: str
    options: Mapping[str, Any]
    history: History


class Rendering:
    """One model's renderer and tokenizer. With `texts_last` texts are encoded after rendering (see `agree`)."""

    def __init__(
        self, tokenizer: FileTokenizer, renderer: Renderer, source: Source, *, texts_last: bool = False
    ) -> None:
        self.tokenizer = tokenizer
        self.source = source
        self.stop_token_ids = tuple(renderer.get_stop_token_ids())
        self._think_end: int | None = tokenizer.convert_tokens_to_ids("</think>")
        self._renderer = renderer
        self._texts_last = texts_last

    @classmethod
    def load(
        cls,
        directory: str | Path,
        renderer: str,
        options: Mapping[str, Any] | None = None,
        *,
        history: History = "strip",
        model: str = "",
    ) -> Rendering:
        """The model whose tokenizer.json is in `directory`; `renderer` is a name that `renderers` knows.

        `model` is its name, for `renderer="auto"`.
        """

        def parts() -> tuple[FileTokenizer, Renderer, Source]:
            tokenizer = FileTokenizer.load(directory)
            name, made = make_renderer(tokenizer, renderer, options or {}, history, model)
            return tokenizer, made, Source(Path(directory), name, dict(options or {}), history)

        made = parts()
        faster = cls(*made, texts_last=True)
        return faster if agree(cls(*made), faster) else cls(*parts())

    async def prompt(self, conversation: Conversation) -> Int32:
        """The whole conversation, ready for the next answer."""
        if _characters(conversation) < _LONG:
            return self.render(conversation)
        return await asyncio.to_thread(self.render, conversation)

    def render(self, conversation: Conversation, *, open_answer: bool = True) -> Int32:
        """As `prompt`, at once; or as it stands in a history, without the opening of an answer."""
        _require_text(conversation.messages)
        messages, tools = openai_wire.messages(_system_first(conversation.messages)), _declared(conversation.tools)

        def render() -> list[int]:
            return self._renderer.render_ids(messages, tools=tools, add_generation_prompt=open_answer)

        try:
            return self.tokenizer.rendered(render, again=True) if self._texts_last else np.array(render(), np.int32)
        except (ValueError, TypeError, LookupError) as error:
            message = f"This model's chat format can't express the conversation: {error}"
            raise EngineError(message, fault="unsupported", status=400) from error

    async def extension(
        self, prompt: Int32, sampled: Int32, new: Sequence[Message], tools: Sequence[Tool]
    ) -> Int32 | None:
        """The tokens that `new` adds after `prompt` and `sampled`, or None where appending can't be proven exact.

        Only the end of `prompt` is looked at, the opening of the turn that was answered; so the cost does not grow
        with the context.
        """
        if sum(_length(message) for message in new) < _LONG:
            return self.extend(prompt, sampled, new, tools)
        return await asyncio.to_thread(self.extend, prompt, sampled, new, tools)

    def extend(self, prompt: Int32, sampled: Int32, new: Sequence[Message], tools: Sequence[Tool]) -> Int32 | None:
        """As `extension`, at once."""
        _require_text(new)
        before, answer = prompt[-_OPENING:].tolist(), sampled.tolist()
        messages, declared = openai_wire.messages(map(_as_user, new)), _declared(tools)
        kept = before + answer

        def bridge() -> list[int]:
            bridged = self._renderer.bridge_to_next_turn(before, answer, messages, tools=declared)
            same = bridged is not None and bridged.token_ids[: len(kept)] == kept
            return bridged.token_ids[len(kept) :] if bridged is not None and same else []

        added = self.tokenizer.rendered(bridge, again=False) if self._texts_last else np.array(bridge(), np.int32)
        return added if len(added) else None

    def parse(
        self, prompt: Int32, sampled: Int32, tools: Sequence[Tool], *, allow_calls: bool, mint: Callable[[], str]
    ) -> Message:
        """What was said. A tool call that can't be read stays visible as text; `mint` names those that can."""
        ids = sampled.tolist()
        parsed = self._renderer.parse_response(ids, tools=_declared(tools), prompt_ids=prompt[-_OPENING:].tolist())
        good = [call for call in parsed.tool_calls if allow_calls and call.name]
        parts: list[Part] = [Reasoning(parsed.reasoning_content)] if parsed.reasoning_content else []
        if text := self._visible(parsed, ids, [call for call in parsed.tool_calls if call not in good]):
            parts.append(Text(text))
        parts.extend(ToolCall(mint(), call.name or "", arguments_text(call.raw, call.arguments)) for call in good)
        return Message("assistant", tuple(parts))

    def reasoning_tokens(self, sampled: Int32, message: Message) -> int:
        """How many of the sampled tokens are thinking, its end marker included."""
        if not message.reasoning:
            return 0
        ends = np.flatnonzero(sampled == self._think_end) if self._think_end is not None else sampled[:0]
        return int(ends[0]) + 1 if len(ends) else len(sampled)

    def _visible(self, parsed: Parsed, ids: list[int], unread: list[ParsedCall]) -> str:
        pieces = [parsed.content, *(self._raw(call, ids) for call in unread)]
        return "\n".join(piece for piece in pieces if piece)

    def _raw(self, call: ParsedCall, ids: list[int]) -> str:
        if call.token_span is None:
            return call.raw
        start, end = call.token_span
        return self.tokenizer.decode(ids[start:end])


def _system_first(messages: Sequence[Message]) -> list[Message]:
    """Chat formats have one system message, at the beginning; those that come later are rendered as the user's."""
    leading = list(takewhile(lambda message: message.role == "system", messages))
    later = [_as_user(message) for message in messages[len(leading) :]]
    if len(leading) > 1:
        leading = [Message("system", (Text("\n\n".join(message.text for message in leading)),))]
    return leading + later


def _as_user(message: Message) -> Message:
    return replace(message, role="user") if message.role == "system" else message


def _declared(tools: Sequence[Tool]) -> list[dict[str, Any]] | None:
    return openai_wire.tools(tools) or None


def _require_text(messages: Sequence[Message]) -> None:
    for message in messages:
        for part in message.parts:
            for item in part.parts if isinstance(part, ToolResult) else (part,):
                if isinstance(item, Image | Opaque):
                    what = "an image" if isinstance(item, Image) else repr(item.value)[:80]
                    said = f"A message holds {what}; in tokens mode this model reads text. Set engine.mode=chat for it."
                    raise EngineError(said, fault="unsupported", status=400)


def _characters(conversation: Conversation) -> int:
    return sum(_length(message) for message in conversation.messages)


def _length(message: Message) -> int:
    length = len(message.text)
    for part in message.parts:
        if isinstance(part, ToolResult):
            length += sum(len(item.text) for item in part.parts if isinstance(item, Text))
    return length
