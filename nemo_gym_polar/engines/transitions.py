# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The steps that conversations take, as small examples: what was asked, what the model said, and what came next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from nemo_gym_polar.chat import Conversation, Message, Reasoning, Text, Tool, ToolCall, ToolResult

Ending = Literal["whole", "empty", "cut"]

_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
_TOOLS = (Tool("bash", "Run a command", _SCHEMA),)
_THINKING = Reasoning("I should look first.")
_WORDS = Text("Here is what I found.")
_CALLS = (ToolCall("call_1", "bash", '{"command":"ls"}'), ToolCall("call_2", "bash", '{"command":"pwd"}'))
_SYSTEM = Message("system", (Text("You are a careful assistant."),))
_QUESTION = Message("user", (Text("What is in this directory?"),))
_NEXT = Message("user", (Text("And in the one above?"),))
_REMINDER = Message("system", (Text("Be brief."),))


@dataclass(frozen=True, slots=True)
class Transition:
    """After `asked` the model gives `answer`, then `new` comes; without `new` it is the step to the answer itself.

    `ending` says how the answer ends: as the format ends it, at once (nothing but the end), or cut off by length.
    """

    name: str
    asked: Conversation
    answer: Message
    new: tuple[Message, ...]
    ending: Ending = "whole"


def transitions() -> Iterator[Transition]:
    text, think = _says(_WORDS), _says(_THINKING, _WORDS)
    call, both = _says(_CALLS[0]), _says(*_CALLS)
    think_call = _says(_THINKING, _CALLS[0])
    first = _asked(_QUESTION)
    used = _asked(_QUESTION, call, _result(1))
    yield Transition("user→assistant", first, text, ())
    yield Transition("user→assistant with thinking", first, think, ())
    yield Transition("tool→assistant", used, text, ())
    yield Transition("assistant with text→user", first, text, (_NEXT,))
    yield Transition("assistant with tool calls→tool", first, call, (_result(1),))
    yield Transition("assistant with thinking→user", first, think, (_NEXT,))
    yield Transition("assistant with thinking and calls→tool", first, think_call, (_result(1),))
    yield Transition("parallel results", first, both, (_result(1, 2),))
    yield Transition("a tool's result and a user's word", first, call, (_result(1), _NEXT))
    yield Transition("system in the middle", first, text, (_REMINDER, _NEXT))
    yield Transition("empty answer", first, _says(), (_NEXT,), "empty")
    yield Transition("answer cut by length", first, text, (_NEXT,), "cut")
    yield Transition("thinking cut by length", first, think, (_NEXT,), "cut")


def _asked(*messages: Message) -> Conversation:
    return Conversation((_SYSTEM, *messages), _TOOLS)


def _says(*parts: Reasoning | Text | ToolCall) -> Message:
    return Message("assistant", parts)


def _result(*numbers: int) -> Message:
    return Message("tool", tuple(ToolResult(f"call_{n}", (Text(f"file{n}.txt"),), name="bash") for n in numbers))
