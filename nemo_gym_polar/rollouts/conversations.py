# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What was said in each trace, as chat messages beside its tokens.

Traces share most of what was said, so a message of a session is kept once: an entry has the messages that no earlier
entry has, and names the one that it goes on from. Nothing here grows with the square of the turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.tree import Node
from nemo_gym_polar.gateway.chat_form import chat_messages, chat_tool

NOBODY: Mapping[str, Any] = {"after": None, "prompt": 0, "messages": [], "tools": []}


@dataclass(frozen=True, slots=True)
class Said:
    """Of one trace: what was said before its first own answer, what from there on, and the tools of both."""

    prompt: Sequence[Mapping[str, Any]] = ()
    response: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Mapping[str, Any]] | None = None


class Conversations:
    """Entries for traces, one after the other.

    An entry has `messages`; `after` is None, or the number of an entry before it and how many of that one's messages,
    counted from the conversation's beginning, come first; `prompt` of all of them come before the trace's first own
    answer. `tools` go with an entry that begins a conversation.
    """

    def __init__(self, store: TurnStore) -> None:
        self.store = store
        self.entries: list[dict[str, Any]] = []
        self._known: dict[int, tuple[int, int]] = {}  # by node: the entry that has it, the messages up to its end

    @classmethod
    def of(cls, store: TurnStore, traces: Iterable[Trace]) -> Self:
        made = cls(store)
        for trace in traces:
            made.entries.append(made._entry(trace) if trace.turns else dict(NOBODY))
        return made

    def _entry(self, trace: Trace) -> dict[str, Any]:
        first, last = self.store[trace.turns[0]], self.store[trace.turns[-1]]
        nodes = self.store.tree.nodes
        begun, new = self._new(nodes[last.request if last.answer is None else last.answer])
        after = self._known.get(begun.index)
        messages, count = [], after[1] if after else 0
        for node in new:
            rows = chat_messages(node.message) if node.message else []
            messages += rows
            count += len(rows)
            self._known[node.index] = (len(self.entries), count)
        _, prompt = self._known.get(first.request, (0, 0))  # a root has no message
        entry = {"after": list(after) if after else None, "prompt": min(prompt, count), "messages": messages}
        return entry if after else {**entry, "tools": list(map(chat_tool, begun.tools))}

    def _new(self, node: Node) -> tuple[Node, list[Node]]:
        """The nodes up to `node` that no entry has, and the one before them."""
        new = []
        while node.parent is not None and node.index not in self._known:
            new.append(node)
            node = node.parent
        return node, new[::-1]


def conversations(store: TurnStore, traces: Iterable[Trace]) -> list[dict[str, Any]]:
    return Conversations.of(store, traces).entries


def read_conversations(entries: Sequence[Mapping[str, Any] | None]) -> list[Said]:
    """What `conversations` made, whole again; of traces that came without, nothing. Raises `KeyError`, `IndexError`,
    `TypeError` or `ValueError` for what it did not make."""
    wholes: list[Sequence[Mapping[str, Any]]] = []
    tools: list[Sequence[Mapping[str, Any]]] = []
    said = []
    for entry in (given or NOBODY for given in entries):
        at, count = entry["after"] or (None, 0)
        wholes.append([*(() if at is None else wholes[at][:count]), *entry["messages"]])
        tools.append(entry["tools"] if at is None else tools[at])
        prompt = entry["prompt"]
        said.append(Said(wholes[-1][:prompt], wholes[-1][prompt:], tools[-1] or None))
    return said
