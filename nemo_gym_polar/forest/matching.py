# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which turn does a conversation follow?

First by position: the history is walked down the message tree, where a reply is known by the call ids that the gateway
minted, then by its canonical content. If the walk breaks, the last assistant message that is known anywhere names the
turn, and what differs names the cause. A history without any known answer begins a new conversation (`labels.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nemo_gym_polar.chat import Conversation, Message, Reasoning
from nemo_gym_polar.forest.canonical import message_digest
from nemo_gym_polar.forest.echo import call_ids
from nemo_gym_polar.forest.tree import MessageTree, Node, Walk
from nemo_gym_polar.forest.turn import Cause, Edge, Turn


@dataclass(frozen=True, slots=True)
class Match:
    """Where a conversation belongs, as far as messages can tell; tokens have the last word in `Forest.append`.

    With edge `continue`, `new` holds the messages after the parent's answer: all that is left to encode. With any
    other edge the whole conversation is new. `drift` is what the harness changed, harmlessly, in repeating the answer.
    """

    conversation: Conversation
    edge: Edge
    parent: int | None = None
    cause: Cause | None = None
    drift: Cause | None = None
    known: Node | None = None
    new: tuple[Message, ...] = ()

    @property
    def continues(self) -> bool:
        return self.edge is Edge.CONTINUE


class Answers:
    """The answers given so far, found by call id or by what they say; thinking aside."""

    def __init__(self) -> None:
        self._by_call: dict[str, int] = {}
        self._by_words: dict[bytes, int] = {}

    def add(self, turn: int, answer: Message) -> None:
        for call in call_ids(answer):
            self._by_call[call] = turn
        if answer.text.strip() or answer.tool_calls:
            self._by_words[_words(answer)] = turn

    def find(self, message: Message) -> int | None:
        by_call = (self._by_call[call] for call in call_ids(message) if call in self._by_call)
        return next(by_call, None) if call_ids(message) & self._by_call.keys() else self._by_words.get(_words(message))

    def last_in(self, messages: Sequence[Message]) -> int | None:
        """The turn of the last known answer among `messages`."""
        found = (self.find(message) for message in reversed(messages) if message.role == "assistant")
        return next((turn for turn in found if turn is not None), None)


def follow(tree: MessageTree, turns: Sequence[Turn], answers: Answers, conversation: Conversation) -> Match | None:
    """The match of a conversation that goes on from a known turn, or repeats a request; None for a new one."""
    root = tree.root(conversation.tools)
    walk = tree.walk(root, conversation.messages) if root else None
    if walk and (retried := _retried(walk, turns, conversation)) is not None:
        return Match(conversation, Edge.RETRY, retried, known=walk.node)
    if walk and walk.answered and answers.last_in(conversation.messages[walk.answered.depth :]) is None:
        return _continuation(walk, walk.answered, turns, conversation)
    broken = _broken(tree, turns, answers, conversation)
    return replace(broken, known=walk.node if walk else None) if broken else None


def ignore_answer(tree: MessageTree, turns: Sequence[Turn], conversation: Conversation) -> Match | None:
    """The match of a history that goes on from an earlier question as if it had not been answered."""
    root = tree.root(conversation.tools)
    node: Node | None = tree.walk(root, conversation.messages).node if root else None
    known, asked = node, None
    while node is not None and (asked := last_with_tokens(node, turns)) is None:
        node = node.parent
    if asked is None:
        return None
    edge = Edge.SIDE_CALL if turns[asked].continued else Edge.ROOT
    return Match(conversation, edge, asked, Cause.ANSWER_DROPPED, known=known)


def _retried(walk: Walk, turns: Sequence[Turn], conversation: Conversation) -> int | None:
    if walk.node.depth < len(conversation.messages):
        return None
    return last_with_tokens(walk.node, turns)


def last_with_tokens(node: Node, turns: Sequence[Turn]) -> int | None:
    """The latest turn asked at `node` that has tokens."""
    return next((index for index in reversed(node.requests) if turns[index].has_tokens), None)


def _continuation(walk: Walk, answered: Node, turns: Sequence[Turn], conversation: Conversation) -> Match:
    """An answer without tokens is passed over: to the policy it is context, like what others say."""
    node: Node | None = answered
    while node is not None:
        parent = next((index for index in reversed(node.answers) if turns[index].has_tokens), None)
        if parent is not None:
            new = conversation.messages[node.depth :]
            return Match(conversation, Edge.CONTINUE, parent, drift=node.drift, known=walk.node, new=new)
        node = node.parent
    return Match(conversation, Edge.ROOT, answered.answers[-1], Cause.TOKENS_MISSING, known=walk.node)


def _broken(tree: MessageTree, turns: Sequence[Turn], answers: Answers, conversation: Conversation) -> Match | None:
    """A history that holds a known answer, but not as it was."""
    parent = answers.last_in(conversation.messages)
    if parent is None:
        return None
    before = tree.nodes[turns[parent].request]
    if before.tools and not conversation.tools and conversation.messages[-1].role == "user":
        return Match(conversation, Edge.SIDE_CALL, parent, Cause.TOOLS_CHANGED)
    return Match(conversation, Edge.ROOT, parent, _difference(tree.conversation(before), conversation))


def _difference(before: Conversation, now: Conversation) -> Cause:
    if before.tools != now.tools:
        return Cause.TOOLS_CHANGED
    if _system(before) != _system(now):
        return Cause.SYSTEM_CHANGED
    return Cause.HISTORY_REWRITTEN


def _system(conversation: Conversation) -> list[bytes]:
    return [message_digest(message) for message in conversation.messages if message.role == "system"]


def _words(message: Message) -> bytes:
    spoken = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return message_digest(Message(message.role, spoken))
