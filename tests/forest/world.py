# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A small world to test the forest in: a tokenizer with merges, a chat template that may strip thinking, an engine in
chat or tokens mode, and a log of what the engine truly read and sampled, kept apart from the forest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nemo_gym_polar.chat import Conversation, FinishReason, Message, Reasoning, Text, Tool, ToolCall, ToolResult
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.framing import PREAMBLE, Kind, frame
from nemo_gym_polar.forest.matching import Match
from nemo_gym_polar.forest.record import TurnCodec, encode_mark, encode_session
from nemo_gym_polar.forest.side import UNKNOWN
from nemo_gym_polar.forest.turn import Flag, Generation, Status, Turn
from nemo_gym_polar.tokens import Float32, Int32, VersionSpan

START, END, THINK, UNTHINK, CALL, UNCALL = range(1, 7)
_PAIRS = 100_000  # ids of two-character tokens start here
Mode = Literal["chat", "tokens"]

SHELL = Tool("bash", "Run a command", {"type": "object", "properties": {"command": {"type": "string"}}})
EDIT = Tool("edit", "Edit a file", {"type": "object", "properties": {"path": {"type": "string"}}})


def system(text: str) -> Message:
    return Message("system", (Text(text),))


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def call(call_id: str, arguments: str = '{"command": "ls"}', name: str = "bash") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def assistant(text: str = "", *calls: ToolCall, reasoning: str = "") -> Message:
    spoken = (Reasoning(reasoning),) if reasoning else ()
    return Message("assistant", (*spoken, *((Text(text),) if text else ()), *calls))


def result(call_id: str, text: str = "ok") -> Message:
    return Message("tool", (ToolResult(call_id, (Text(text),)),))


def compact(message: Message) -> Message:
    """The echo of a harness that parses tool arguments and writes them anew."""

    def rewritten(part: Any) -> Any:
        if not isinstance(part, ToolCall):
            return part
        return replace(part, arguments=json.dumps(json.loads(part.arguments or "{}"), separators=(",", ":")))

    return Message(message.role, tuple(map(rewritten, message.parts)))


def without_thinking(message: Message) -> Message:
    return Message(message.role, tuple(part for part in message.parts if not isinstance(part, Reasoning)))


def encode(text: str) -> list[int]:
    """Pairs of ASCII letters are one token, like merges of a real tokenizer; the rest is one token per character."""
    ids: list[int] = []
    at = 0
    while at < len(text):
        pair = text[at : at + 2]
        if len(pair) == 2 and pair.isascii() and pair.isalpha():
            ids.append(_PAIRS + ord(pair[0]) * 128 + ord(pair[1]))
            at += 2
        else:
            ids.append(ord(text[at]) + 10)
            at += 1
    return ids


def letters(text: str) -> list[int]:
    """The same text split otherwise than `encode` would: a model may sample that."""
    return [ord(letter) + 10 for letter in text]


def said(message: Message, spell: Any = encode) -> list[int]:
    """The tokens of a message's content, as a model that writes it would sample them."""
    ids: list[int] = []
    for part in message.parts:
        match part:
            case Reasoning(text):
                ids += [THINK, *spell(text), UNTHINK]
            case Text(text):
                ids += spell(text)
            case ToolCall(_, name, arguments):
                ids += [CALL, *spell(f"{name} {arguments}"), UNCALL]
            case ToolResult(_, parts):
                ids += spell("".join(inner.text for inner in parts if isinstance(inner, Text)))
    return ids


@dataclass
class Template:
    """Renders like a chat template: arguments anew in compact form, thinking stripped before the last user message."""

    strip_thinking: bool = False
    compact_arguments: bool = True

    def render(self, conversation: Conversation) -> list[int]:
        ids = [START, *encode("tools " + " ".join(tool.name for tool in conversation.tools)), END]
        last = max((at for at, m in enumerate(conversation.messages) if m.role == "user"), default=0)
        for at, message in enumerate(conversation.messages):
            ids += self.message(message, strip=self.strip_thinking and at < last)
        return ids + self.prompt()

    def message(self, message: Message, *, strip: bool = False) -> list[int]:
        shown = without_thinking(message) if strip else message
        if message.role == "assistant" and self.compact_arguments:
            shown = compact(shown)
        return [START, *encode(message.role), *said(shown), END]

    def prompt(self) -> list[int]:
        return [START, *encode("assistant")]


def experts(tokens: Int32, start: int = 0) -> NDArray[np.int16]:
    """Where a mixture of experts would send tokens that begin at position `start`; [T, 2]."""
    return np.stack([tokens % 97, np.arange(start, start + len(tokens)) % 89], axis=1).astype(np.int16)


@dataclass
class Truth:
    """What the engine knows of one call."""

    context: Int32
    sampled: Int32
    logprobs: Float32
    message: Message


@dataclass
class World:
    """A session with an engine behind it. `calls[i]` is the truth about turn i."""

    mode: Mode = "tokens"
    template: Template = field(default_factory=Template)
    forest: Forest = field(default_factory=lambda: Forest("session"))
    calls: list[Truth] = field(default_factory=list)
    version: str = "0"
    seed: int = 0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._codec = TurnCodec(self.forest)
        self._records = [PREAMBLE, frame(Kind.SESSION, encode_session(self.forest.session_id, 0.0, {}))]

    def journal(self) -> bytes:
        """The journal file of the session so far."""
        self._records += [frame(Kind.MARK, encode_mark(mark)) for mark in self.forest.drain_marks()]
        return b"".join(self._records)

    def match(self, messages: Sequence[Message], tools: tuple[Tool, ...] = (SHELL,), hints: Any = None) -> Match:
        return self.forest.match(Conversation(tuple(messages), tools), hints)

    def ask(
        self,
        messages: Sequence[Message],
        answer: Message,
        *,
        tools: tuple[Tool, ...] = (SHELL,),
        hints: Mapping[str, str] | None = None,
        **how: Any,
    ) -> Turn:
        """One model call from beginning to end."""
        return self.answer(self.match(messages, tools, hints), answer, **how)

    def answer(
        self,
        match: Match,
        answer: Message,
        *,
        sampled: list[int] | None = None,
        end: bool = True,
        finish: FinishReason = "stop",
        status: Status = Status.KEPT,
        flags: frozenset[Flag] = frozenset(),
        versions: tuple[VersionSpan, ...] | None = None,
    ) -> Turn:
        """The second half of a call: the engine's work and its record."""
        ids = said(answer) if sampled is None else list(sampled)
        goes_on = self.mode == "tokens" and match.continues and match.parent is not None
        known = self.forest[match.parent].length if goes_on else 0
        generation = self.generation(self.context(match), ids + ([END] if end else []), answer, known=known)
        generation = replace(generation, finish_reason=finish, status=status, flags=flags)
        if versions is not None:
            generation = replace(generation, versions=versions)
        return self._append(match, generation)

    def fail(self, match: Match, answer: Message | None = None) -> Turn:
        """A call without token ids; with an `answer`, the harness was shown one nevertheless."""
        none = self.generation([], [], answer or Message("assistant", ()))
        return self._append(match, replace(none, status=Status.FAILED, versions=()))

    def generation(self, context: list[int], sampled: list[int], answer: Message, *, known: int = 0) -> Generation:
        """Side arrays leave out the `known` tokens, as a server may that is asked to; the last row is unknown."""
        logprobs = -self._random.random(len(sampled)).astype(np.float32)
        spans = (VersionSpan(self.version, 0, len(sampled)),)
        read, said = np.array(context, np.int32), np.array(sampled, np.int32)
        rows = experts(np.concatenate([read, said]))[known:]
        rows[len(rows) - 1 :] = UNKNOWN
        return Generation(read, said, logprobs, answer, versions=spans, side={"experts": rows})

    def context(self, match: Match) -> list[int]:
        """What the engine reads: in tokens mode the known tokens and the new messages, else all rendered anew."""
        if self.mode == "tokens" and match.continues and match.parent is not None:
            ids = self.forest.tokens(match.parent).tolist()
            ids += [] if ids[-1] == END else [END]
            for message in match.new:
                ids += self.template.message(message)
            return [*ids, *self.template.prompt()]
        return self.template.render(match.conversation)

    def _append(self, match: Match, generation: Generation) -> Turn:
        turn = self.forest.append(match, generation)
        self._records.append(frame(Kind.TURN, self._codec.encode(turn)))
        self.journal()
        self.calls.append(Truth(generation.context, generation.sampled, generation.logprobs, generation.message))
        return turn
