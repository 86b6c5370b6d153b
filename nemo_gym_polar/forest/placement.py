# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Where a turn hangs, proven by its tokens.

Messages propose a parent, tokens decide: only a context that begins with every token of the parent continues it.
"""

from __future__ import annotations

from dataclasses import dataclass

from nemo_gym_polar.forest.canonical import thinking
from nemo_gym_polar.forest.matching import Match, last_with_tokens
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.tree import Node
from nemo_gym_polar.forest.turn import Cause, Edge, Generation, Status, Turn
from nemo_gym_polar.tokens import Int32

_OPENING = 4  # tokens; more than any format needs to open the thinking
_BLOCK = 1 << 15  # compare this many tokens at a time, so that no big array is made for it


@dataclass(frozen=True, slots=True)
class Place:
    """A context is the first `shared` tokens of `parent`'s sequence and then its own."""

    parent: int | None
    edge: Edge
    shared: int = 0
    cause: Cause | None = None


def place(store: TurnStore, match: Match, request: Node, generation: Generation) -> Place:
    if generation.status is Status.FAILED:
        return _unread(store, match)
    # Asked again here, not in `match`: the first attempt may have finished in between.
    retried = last_with_tokens(request, store.turns)
    if retried is not None:
        return Place(retried, Edge.RETRY, common_prefix(store.context(retried), generation.context))
    if match.edge is Edge.CONTINUE and match.parent is not None:
        return _after(store, match, match.parent, generation.context)
    return _apart(store, match, generation.context)


def common_prefix(known: Int32, context: Int32) -> int:
    """How many leading tokens two sequences share."""
    length = min(len(known), len(context))
    for start in range(0, length, _BLOCK):
        end = min(start + _BLOCK, length)
        different = known[start:end] != context[start:end]
        if different.any():
            return start + int(different.argmax())
    return length


def _unread(store: TurnStore, match: Match) -> Place:
    """A failed call: nobody knows its context, so it repeats its parent's."""
    if match.parent is None:
        return Place(None, match.edge, cause=match.cause)
    parent = store[match.parent]
    shared = parent.context_length if match.edge is Edge.RETRY else parent.length
    return Place(parent.index, match.edge, shared, match.cause)


def _after(store: TurnStore, match: Match, parent: int, context: Int32) -> Place:
    tokens = store.tokens(parent)
    shared = common_prefix(tokens, context)
    if not store[parent].has_tokens:
        return Place(parent, Edge.ROOT, shared, Cause.TOKENS_MISSING)
    if shared == len(tokens):
        return Place(parent, Edge.CONTINUE, shared)
    return Place(parent, Edge.ROOT, shared, match.drift or _cause(store, store[parent], shared))


def _apart(store: TurnStore, match: Match, context: Int32) -> Place:
    if match.parent is None:
        return Place(None, match.edge, cause=match.cause)
    shared = common_prefix(store.tokens(match.parent), context)
    edge = Edge.ROOT if match.edge is Edge.RETRY else match.edge
    return Place(match.parent, edge, shared, match.cause)


def _cause(store: TurnStore, turn: Turn, position: int) -> Cause:
    """Why the engine's rendering leaves the known tokens at `position`: by whose answer that is."""
    while position < turn.shared and turn.parent is not None:
        turn = store[turn.parent]
    answer = store.answer(turn)
    # A template that drops the thinking drops its opening, too, which the policy read at the end of its context.
    if answer is None or position < turn.context_length - (_OPENING if thinking(answer) else 0):
        return Cause.HISTORY_REWRITTEN
    if thinking(answer):
        return Cause.THINKING_STRIPPED
    return Cause.ARGUMENTS_CHANGED if answer.tool_calls else Cause.TOKEN_BOUNDARY
