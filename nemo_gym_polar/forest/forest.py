# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The token forest of a session: every model call once, with exactly the tokens that were read and sampled.

Invariant: a turn with edge `continue` has a context that begins with all tokens of its parent. It is checked token by
token on every append, whatever the gateway believed; where it fails, the turn begins a new chain with its cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from nemo_gym_polar.chat import Conversation, Message
from nemo_gym_polar.forest.canonical import message_digest
from nemo_gym_polar.forest.check import check_generation
from nemo_gym_polar.forest.digests import turn_digest
from nemo_gym_polar.forest.evidence import weigh_request, weigh_turn
from nemo_gym_polar.forest.labels import (
    SUB_AGENT_HEADERS,
    begin,
    from_summary,
    outranks,
    quoting,
    renewed,
    resumed,
    spawn,
)
from nemo_gym_polar.forest.matching import Answers, Match, follow, ignore_answer
from nemo_gym_polar.forest.placement import Place, place
from nemo_gym_polar.forest.side import new_rows
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.tree import Node
from nemo_gym_polar.forest.turn import Cause, Edge, Generation, Status, Turn


class Forest(TurnStore):
    """A turn store that grows by model calls. Not thread-safe: it belongs to the loop that serves the session."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self._answers = Answers()

    def match(self, conversation: Conversation, hints: Mapping[str, str] | None = None) -> Match:
        """Where `conversation` belongs; what it reveals about earlier answers is marked at once."""
        match = follow(self.tree, self.turns, self._answers, conversation) or self._begin(conversation, hints or {})
        match = resumed(self.turns, match)
        weigh_request(self, match)
        return self._after_summary(match) or match

    def peek(self, conversation: Conversation) -> Match | None:
        """The known turn that `conversation` goes on from or repeats, without a conclusion drawn from that."""
        return follow(self.tree, self.turns, self._answers, conversation)

    def append(self, match: Match, generation: Generation) -> Turn:
        """Add a call. Raises a `TokenError` if what the engine sent can't be trusted; the forest is then unchanged."""
        check_generation(generation)
        request = self._request_node(match)
        where = place(self, match, request, generation)
        turn = self._turn(where, request, generation, match.drift)
        self.restore(turn)
        weigh_turn(self, turn)
        return turn

    def restore(self, turn: Turn) -> None:
        super().restore(turn)
        answer = self.answer(turn)
        if answer is not None:
            self._answers.add(turn.index, answer)

    def _request_node(self, match: Match) -> Node:
        messages = match.conversation.messages
        start = match.known or self.tree.add_root(match.conversation.tools)
        return self.tree.extend(start, messages[start.depth :])

    def _turn(self, where: Place, request: Node, generation: Generation, drift: Cause | None) -> Turn:
        delta = _frozen(generation.context[where.shared :])
        sampled, logprobs = _frozen(generation.sampled), _frozen(generation.logprobs)
        above = b"" if where.parent is None else self.turns[where.parent].digest
        return Turn(
            index=len(self.turns),
            parent=where.parent,
            edge=where.edge,
            shared=where.shared,
            delta=delta,
            sampled=sampled,
            logprobs=logprobs,
            digest=turn_digest(above, where.shared, delta, sampled, logprobs),
            request=request.index,
            answer=self._reply(request, generation),
            cause=where.cause,
            drift=drift,
            status=generation.status,
            finish_reason=generation.finish_reason,
            versions=generation.versions,
            flags=generation.flags,
            response_id=generation.response_id,
            model=generation.model,
            dialect=generation.dialect,
            started=generation.started,
            ended=generation.ended,
            temperature=generation.temperature,
            side=new_rows(generation.side, len(delta) + len(sampled)),
        )

    def _reply(self, request: Node, generation: Generation) -> int | None:
        unheard = generation.status in (Status.FAILED, Status.PARTIAL) and not generation.message.parts
        return None if unheard else self.tree.add_reply(request, generation.message).index

    def _begin(self, conversation: Conversation, hints: Mapping[str, str]) -> Match:
        """The match of a conversation without any known answer in it."""
        main = self._main_conversation(conversation)
        if main is not None and renewed(hints):
            return from_summary(self.turns, self.answer, conversation)
        if main is not None and SUB_AGENT_HEADERS & hints.keys():
            return spawn(self.turns, self.answer, conversation)
        return (
            quoting(self.turns, self.answer, conversation)
            or ignore_answer(self.tree, self.turns, conversation)
            or begin(self.turns, self.answer, main, conversation)
        )

    def _after_summary(self, broken: Match) -> Match | None:
        """The match of a rewritten history that begins with a summary and keeps the messages after what it sums up."""
        if broken.cause is not Cause.HISTORY_REWRITTEN or broken.parent is None:
            return None
        match = quoting(self.turns, self.answer, broken.conversation)
        if match is None or match.parent is None:
            return None
        summary = self[match.parent]
        asked_here = summary.parent == broken.parent and summary.edge is not Edge.SUB_AGENT
        if not asked_here and not self._same_talk(match.parent, broken.parent):
            return None
        weigh_request(self, match)
        return replace(match, known=broken.known)

    def _same_talk(self, one: int, other: int) -> bool:
        """Whether two turns were asked by the same agent: its first prompt tells."""
        first, second = (self.conversation(self[index]).messages for index in (one, other))
        return next(map(message_digest, _users(first)), None) == next(map(message_digest, _users(second)), None)

    def _main_conversation(self, conversation: Conversation) -> Conversation | None:
        """The task's own conversation, unless `conversation` is about to take its place."""
        turn = self.main
        if turn is None:
            return None
        main = self.conversation(turn)
        return None if not turn.continued and outranks(main, conversation) else main


def _users(messages: Iterable[Message]) -> Iterator[Message]:
    return (message for message in messages if message.role == "user")


def _frozen[T: np.generic](array: np.ndarray[tuple[int, ...], np.dtype[T]]) -> np.ndarray[tuple[int, ...], np.dtype[T]]:
    """An own, read-only copy: a slice would keep the engine's whole answer alive."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
