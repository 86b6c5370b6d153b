# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What kind of conversation begins here: the task itself, a sub-agent, a compacted history, a side call?

Harnesses label little on the wire, so the shape decides: who is asked with which tools, whose tool call holds the
words that the new conversation starts with, whose answer it quotes as a summary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import orjson

from nemo_gym_polar.chat import Conversation, Message, Tool
from nemo_gym_polar.forest.matching import Match
from nemo_gym_polar.forest.turn import Edge, Status, Turn

SUB_AGENT_HEADERS = frozenset(
    {"x-openai-subagent", "x-codex-parent-thread-id", "x-claude-code-agent-id", "x-parent-session-id"}
)
WINDOW_HEADER = "x-codex-window-id"
_SUMMARY_CHARACTERS = 32
_SUMMARY = re.compile(r"<(summary|state_snapshot)>(.*?)</\1>", re.DOTALL)
_PROMPT_CHARACTERS = 8
_RECENT = 256  # turns; a bound for sessions in which no call has to do with another

Answer = Callable[[Turn], Message | None]


def renewed(hints: Mapping[str, str]) -> bool:
    """Whether the harness says that its history was replaced by a summary: Codex numbers its windows, from 0."""
    number = hints.get(WINDOW_HEADER, "").rpartition(":")[2]
    return number.isdecimal() and int(number) > 0


def from_summary(turns: Sequence[Turn], answer: Answer, conversation: Conversation) -> Match:
    """The match of a conversation that is known to start from a summary, however short that is."""
    asked = (turn for turn in islice(reversed(turns), _RECENT) if turn.edge is Edge.SIDE_CALL and turn.has_tokens)
    summary = next((turn.index for turn in asked), None)
    return quoting(turns, answer, conversation) or Match(conversation, Edge.COMPACTION, summary)


def quoting(turns: Sequence[Turn], answer: Answer, conversation: Conversation) -> Match | None:
    """The match of a conversation that starts from a summary: it quotes a whole answer in what others say.

    Of an answer that marks its summary, that alone is quoted; white space may have changed.
    """
    said = _words("\n".join(message.text for message in conversation.messages if message.role != "assistant"))
    for turn in islice(reversed(turns), _RECENT):
        message = answer(turn)
        text = _summary(message.text) if message and not message.tool_calls else ""
        if len(text) >= _SUMMARY_CHARACTERS and text in said:
            return Match(conversation, Edge.COMPACTION, turn.index)
    return None


def _summary(text: str) -> str:
    marked = _SUMMARY.search(text)
    return _words(marked[2] if marked else text)


def _words(text: str) -> str:
    return " ".join(text.split())


def resumed(turns: Sequence[Turn], match: Match) -> Match:
    """`match`, or the better one of a conversation in which the summary stands as the model's own words: what follows
    an answer to a side call is the task again, once there are tools."""
    if match.edge is not Edge.ROOT or match.parent is None or not match.conversation.tools:
        return match
    if turns[match.parent].edge is not Edge.SIDE_CALL:
        return match
    return replace(match, edge=Edge.COMPACTION, cause=None)


def begin(turns: Sequence[Turn], answer: Answer, main: Conversation | None, conversation: Conversation) -> Match:
    """The match of a conversation that has nothing to do with any before. `main` is the task's own, once begun."""
    if main is None:
        return Match(conversation, Edge.ROOT)
    if main.tools and not _names(main.tools) & _names(conversation.tools):
        return Match(conversation, Edge.SIDE_CALL)
    spawned = spawn(turns, answer, conversation)
    if spawned.parent is not None or _system_text(main) != _system_text(conversation):
        return spawned
    return Match(conversation, Edge.ROOT)


def spawn(turns: Sequence[Turn], answer: Answer, conversation: Conversation) -> Match:
    """The match of a sub-agent's first request."""
    return Match(conversation, Edge.SUB_AGENT, _spawner(turns, answer, conversation))


def outranks(main: Conversation, conversation: Conversation) -> bool:
    """Whether `conversation` is the task itself and `main`, which came first, only a call to set it up."""
    return bool(conversation.tools) and not main.tools


def _names(tools: tuple[Tool, ...]) -> set[str]:
    return {tool.name for tool in tools}


def _system_text(conversation: Conversation) -> str:
    return "\n".join(message.text for message in conversation.messages if message.role == "system")


def _spawner(turns: Sequence[Turn], answer: Answer, conversation: Conversation) -> int | None:
    """The turn that started this agent: its call's arguments hold the prompt, or it alone waits for a result."""
    prompt = "\n".join(message.text for message in conversation.messages if message.role == "user")
    waiting: list[int] = []
    for turn in islice(reversed(turns), _RECENT):
        message = answer(turn)
        if message is None or not message.tool_calls:
            continue
        if any(_holds(call.arguments, prompt) for call in message.tool_calls):
            return turn.index
        if not turn.continued and turn.status is Status.KEPT:
            waiting.append(turn.index)
    return waiting[0] if len(waiting) == 1 else None


def _holds(arguments: str, prompt: str) -> bool:
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return False
    return any(len(text) >= _PROMPT_CHARACTERS and text in prompt for text in _texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
