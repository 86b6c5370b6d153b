# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Do two ways of rendering come to the same? Tried out before the faster one is used.

A renderer that only passes on the ids of a text may be given them afterwards. One that looks at them, or that keeps
them for the next conversation, may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from nemo_gym_polar.chat import Conversation, Message, Part, Reasoning, Text, Tool, ToolResult
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.tokenizer import FileTokenizer
from nemo_gym_polar.engines.transitions import transitions
from nemo_gym_polar.tokens import Int32

_LONG = "\n  {0} {0}, {0}: {0}.\n\n{0}  \n"  # long enough for a text of its own, with space to trim


class Renders(Protocol):
    """What is compared."""

    tokenizer: FileTokenizer
    stop_token_ids: tuple[int, ...]

    def render(self, conversation: Conversation, *, open_answer: bool = True) -> Int32: ...

    def extend(self, prompt: Int32, sampled: Int32, new: Sequence[Message], tools: Sequence[Tool]) -> Int32 | None: ...


def agree(one: Renders, other: Renders) -> bool:
    """Whether all steps that conversations take come to the same in `other` as in `one`, and again in another order.

    The two may share a renderer, so `other` comes first: what it left behind is then found in `one`.
    """
    steps = list(_steps())
    found, again = ([_outcome(step, other) for step in order] for order in (steps, steps[::-1]))
    return found == again[::-1] == [_outcome(step, one) for step in steps]


Step = Callable[[Renders], Int32 | None]


def _steps() -> Iterator[Step]:
    for transition in transitions():
        tools = transition.asked.tools
        for change in (_as_it_is, _longer):
            asked, answer, *new = [
                tuple(map(change, messages))
                for messages in (transition.asked.messages, (transition.answer,), transition.new)
            ]
            yield _render(Conversation((*asked, *answer, *new[0]), tools))
            yield _extend(Conversation(asked, tools), new[0])


def _render(conversation: Conversation) -> Step:
    return lambda renders: renders.render(conversation)


def _extend(asked: Conversation, new: tuple[Message, ...]) -> Step:
    def step(renders: Renders) -> Int32 | None:
        said = [*renders.tokenizer.encode("I did what was asked, and here is the end."), *renders.stop_token_ids[:1]]
        return renders.extend(renders.render(asked), np.array(said, np.int32), new, asked.tools)

    return step


def _outcome(step: Step, renders: Renders) -> list[int] | str | None:
    try:
        ids = step(renders)
    except (
        ArithmeticError, AssertionError, AttributeError, EngineError, LookupError, RuntimeError, TypeError, ValueError
    ) as error:  # fmt: skip
        return type(error).__name__
    return None if ids is None else ids.tolist()


def _as_it_is(message: Message) -> Message:
    return message


def _longer(message: Message) -> Message:
    return replace(message, parts=tuple(map(_longer_part, message.parts)))


def _longer_part(part: Part) -> Part:
    match part:
        case Text(text):
            return Text(_LONG.format(text))
        case Reasoning(text):
            return Reasoning(_LONG.format(text))
        case ToolResult():
            return replace(
                part, parts=tuple([Text(_LONG.format(item.text)) for item in part.parts if isinstance(item, Text)])
            )
    return part
