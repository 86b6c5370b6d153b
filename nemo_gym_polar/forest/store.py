# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The turns of a session and how to read them: tokens, chains, kinds, messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nemo_gym_polar.chat import Conversation, Message
from nemo_gym_polar.forest.errors import UnknownTurnError
from nemo_gym_polar.forest.tip import Tip
from nemo_gym_polar.forest.trace import TraceKind
from nemo_gym_polar.forest.tree import MessageTree
from nemo_gym_polar.forest.turn import Edge, Mark, Status, Turn
from nemo_gym_polar.tokens import Int32

_EMPTY = np.empty(0, np.int32)
_KINDS: dict[Edge, TraceKind] = {
    Edge.SUB_AGENT: "sub_agent",
    Edge.COMPACTION: "compaction",
    Edge.SIDE_CALL: "side_call",
}


class TurnStore:
    """Turns in the order of their answers, so that a parent always comes before its children."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.turns: list[Turn] = []
        self.tree = MessageTree()
        self._marks: list[Mark] = []
        self._tip = Tip()

    def __len__(self) -> int:
        return len(self.turns)

    def __getitem__(self, index: int) -> Turn:
        if not 0 <= index < len(self.turns):
            raise UnknownTurnError(f"session {self.session_id} has no turn {index}; it has {len(self.turns)}")
        return self.turns[index]

    @property
    def main(self) -> Turn | None:
        """The first turn of the task itself."""
        return next((turn for turn in self.turns if turn.edge is Edge.ROOT and turn.parent is None), None)

    def tokens(self, index: int) -> Int32:
        """Context and sampled tokens of a turn."""
        turn = self[index]
        if index == self._tip.turn:
            return self._tip.tokens
        return self._gather(turn, turn.length)

    def context(self, index: int) -> Int32:
        """The tokens that a turn's answer was sampled after."""
        turn = self[index]
        return self._gather(turn, turn.context_length)

    def side(self, index: int, name: str) -> NDArray[Any]:
        """A side array over all tokens of a turn, one row for each; a `KeyError` if a turn of the way lacks it."""
        turn = self[index]
        return np.concatenate([one.side[name][:own] for one, own in self._pieces(turn, turn.length)][::-1])

    def way(self, turn: Turn) -> list[Turn]:
        """The turns that hold the tokens of a turn's sequence, the newest first."""
        return [one for one, _ in self._pieces(turn, turn.length)]

    def previous(self, turn: Turn) -> Turn | None:
        """The chain step: the turn all of whose tokens `turn`'s context begins with, if there is one.

        A retry stands where its sibling stands, as long as both read the same tokens.
        """
        while turn.edge is Edge.RETRY and turn.parent is not None:
            sibling = self.turns[turn.parent]
            if turn.shared != sibling.context_length or len(turn.delta):
                return None
            turn = sibling
        return self.turns[turn.parent] if turn.edge is Edge.CONTINUE and turn.parent is not None else None

    def chain(self, index: int) -> list[Turn]:
        """From the first turn of a chain to turn `index`."""
        return list(self._back(self[index]))[::-1]

    def kind(self, turn: Turn) -> TraceKind:
        """What a turn's conversation is for: the nearest edge that says so, else the task itself."""
        while turn.edge not in _KINDS:
            if turn.parent is None:
                return "main"
            turn = self.turns[turn.parent]
        return _KINDS[turn.edge]

    def answer(self, turn: Turn) -> Message | None:
        return None if turn.answer is None else self.tree.nodes[turn.answer].message

    def conversation(self, turn: Turn) -> Conversation:
        """The messages that a turn was asked, as the gateway first saw them."""
        return self.tree.conversation(self.tree.nodes[turn.request])

    def restore(self, turn: Turn) -> None:
        """Add a turn whose message nodes are already in the tree."""
        self.turns.append(turn)
        self.tree.nodes[turn.request].requests += (turn.index,)
        if turn.answer is not None:
            self.tree.link_reply(self.tree.nodes[turn.answer], turn.index)
        if turn.has_tokens:
            self._tip.advance(turn, self.tokens)

    def mark(
        self, index: int, *, status: Status | None = None, edge: Edge | None = None, continued: bool | None = None
    ) -> None:
        """Record a later finding about a turn."""
        mark = Mark(self[index].index, status, edge, continued)
        self.apply(mark)
        self._marks.append(mark)

    def apply(self, mark: Mark) -> None:
        turn = self[mark.turn]
        turn.status = mark.status or turn.status
        turn.edge = mark.edge or turn.edge
        turn.continued = turn.continued if mark.continued is None else mark.continued

    def drain_marks(self) -> list[Mark]:
        """The marks since the last call, for the journal."""
        marks, self._marks = self._marks, []
        return marks

    def _back(self, turn: Turn | None) -> Iterator[Turn]:
        while turn is not None:
            yield turn
            turn = self.previous(turn)

    def _gather(self, turn: Turn, length: int) -> Int32:
        """The first `length` tokens of a turn's sequence."""
        parts: list[Int32] = [_EMPTY]
        for one, own in self._pieces(turn, length):
            parts += [one.sampled[: max(0, own - len(one.delta))], one.delta[:own]]
        return np.concatenate(parts[::-1])

    def _pieces(self, turn: Turn, length: int) -> Iterator[tuple[Turn, int]]:
        """From the newest on: the turns that hold a sequence's first `length` tokens, with how many of their own."""
        while True:
            if length > turn.shared:
                yield turn, length - turn.shared
                length = turn.shared
            if turn.parent is None or not length:
                return
            turn = self.turns[turn.parent]
