# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The sessions of a group must begin with the same prompt, token by token: trainers group by it.

Where one doesn't, the text that differs is shown, because something of the machine or the moment leaked into it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nemo_gym_polar.chat import Conversation, Message
from nemo_gym_polar.forest.canonical import digest_bytes
from nemo_gym_polar.forest.forest import Forest

AROUND = 40  # characters shown before and after the place where two prompts part


@dataclass(frozen=True, slots=True)
class FirstPrompt:
    """The context of a session's first turn: a digest of its token ids, their number, and the messages as text."""

    digest: bytes
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A session whose first prompt is not the group's. `theirs` and `own` are the texts around the first difference."""

    session_id: str
    theirs: str
    own: str

    def __str__(self) -> str:
        return f"session {self.session_id} begins with another prompt than its group: {self.own!r}, not {self.theirs!r}"


def first_prompt(forest: Forest) -> FirstPrompt | None:
    """None for a session whose harness never got an answer."""
    turn = forest.main
    if turn is None or not turn.has_tokens:
        return None
    context = forest.context(turn.index)
    return FirstPrompt(digest_bytes(context.tobytes()), len(context), readable(forest.conversation(turn)))


def readable(conversation: Conversation) -> str:
    tools = [{"name": tool.name, "about": tool.description, "in": dict(tool.parameters)} for tool in conversation.tools]
    head = json.dumps(tools, ensure_ascii=False) if tools else ""
    return "\n".join([head, *(f"[{message.role}] {said(message)}" for message in conversation.messages)])


def readable_rows(messages: Iterable[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> str:
    """The same of messages in chat's form."""
    head = json.dumps(tools, ensure_ascii=False) if tools else ""
    return "\n".join([head, *(f"[{row['role']}] {row['content'] or row.get('tool_calls', '')}" for row in messages)])


def said(message: Message) -> str:
    return message.text or " ".join(map(repr, message.parts))


def mismatches(prompts: Mapping[str, FirstPrompt | None]) -> tuple[Mismatch, ...]:
    """Sessions that differ from the prompt that most sessions have; the earliest one wins a tie."""
    known = {session: prompt for session, prompt in prompts.items() if prompt is not None}
    odd = odd_ones({session: prompt.digest for session, prompt in known.items()})
    usual = next((prompt.text for session, prompt in known.items() if session not in odd), "")
    return tuple(Mismatch(session, *difference(usual, known[session].text)) for session in odd)


def odd_ones[K](digests: Mapping[K, Hashable | None]) -> list[K]:
    """Those that differ from what most have, the earliest winning a tie; None is unknown, and no difference."""
    counts = Counter(digest for digest in digests.values() if digest is not None)
    usual = max(counts, key=counts.__getitem__, default=None)
    return [name for name, digest in digests.items() if digest not in (None, usual)]


def difference(one: str, other: str) -> tuple[str, str]:
    """Both texts around the place where they part. Equal texts with other tokens show their ends."""
    pairs = enumerate(zip(one, other, strict=False))
    at = next((index for index, (ours, theirs) in pairs if ours != theirs), min(len(one), len(other)))
    return one[max(0, at - AROUND) : at + AROUND], other[max(0, at - AROUND) : at + AROUND]
