# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a request reveals about earlier answers: a history tells which of them the harness kept."""

from __future__ import annotations

from nemo_gym_polar.forest.labels import outranks
from nemo_gym_polar.forest.matching import Match
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.turn import Cause, Edge, Status, Turn


def weigh_request(store: TurnStore, match: Match) -> None:
    """Mark what `match` proves: the parent's answer was kept, or was asked for again."""
    if match.parent is None or match.cause is Cause.ANSWER_DROPPED:
        return
    if match.edge is Edge.RETRY:
        _doubt(store, store[match.parent])
    elif match.edge is not Edge.SUB_AGENT:
        _keep(store, store[match.parent])


def weigh_turn(store: TurnStore, turn: Turn) -> None:
    """Relabel earlier turns in the light of a new one."""
    if turn.edge is Edge.COMPACTION and turn.parent is not None:
        summary = _asked_for(store, store[turn.parent])
        if _sums_up(store, summary, turn):
            store.mark(summary.index, edge=Edge.COMPACTION)
    main = store.main
    if main is not None and main is not turn and turn.edge is Edge.ROOT and turn.parent is None:
        _promote(store, main, turn)


def _asked_for(store: TurnStore, summary: Turn) -> Turn:
    """The side call that began what led to a summary; Gemini CLI has it looked over in another call."""
    begun = summary
    while begun.edge is Edge.ROOT and begun.parent is not None:
        begun = store[begun.parent]
    return begun if begun.edge is Edge.SIDE_CALL else summary


def _sums_up(store: TurnStore, summary: Turn, turn: Turn) -> bool:
    """Whether the answer that `turn` starts from was asked for only for that, and not a step of the task.

    Such a call has no tools, or it branches off: its history ends before the task's, and nothing goes on from it. One
    that sums up all there was stays the last step of its chain.
    """
    if summary.edge is Edge.SIDE_CALL:
        return True
    others = [other for other in store.turns if other.edge is Edge.CONTINUE and other is not summary]
    branched = summary.edge is Edge.CONTINUE and any(other.parent == summary.parent for other in others)
    return branched and not any(other.parent == summary.index for other in others)


def _keep(store: TurnStore, turn: Turn) -> None:
    """A history holds this answer: so it was seen, and its siblings that nothing goes on from were not."""
    if turn.continued:
        return
    store.mark(turn.index, continued=True, status=None if turn.status is Status.FAILED else Status.KEPT)
    for sibling in store.tree.nodes[turn.request].requests:
        if sibling != turn.index:
            _doubt(store, store[sibling])
    _settle_dropped(store, turn)


def _settle_dropped(store: TurnStore, turn: Turn) -> None:
    """Of a question's answer and a conversation that ignored it, the one that goes on is the task."""
    if turn.cause is Cause.ANSWER_DROPPED and turn.edge is Edge.ROOT and turn.parent is not None:
        _doubt(store, store[turn.parent])
    for other in store.turns[turn.index + 1 :]:
        if other.parent == turn.index and other.cause is Cause.ANSWER_DROPPED and not other.continued:
            store.mark(other.index, edge=Edge.SIDE_CALL)


def _doubt(store: TurnStore, turn: Turn) -> None:
    """Until a history says otherwise, this answer never arrived."""
    if turn.status is Status.KEPT and not turn.continued:
        store.mark(turn.index, status=Status.UNSEEN)


def _promote(store: TurnStore, main: Turn, turn: Turn) -> None:
    """A call without tools that came first was a side call, if now the task begins."""
    if not main.continued and outranks(store.conversation(main), store.conversation(turn)):
        store.mark(main.index, edge=Edge.SIDE_CALL)
