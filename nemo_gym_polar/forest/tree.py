# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""All messages of a session, each once: histories that begin alike share their beginning.

A node is a message after a certain history. Finding a history costs one comparison per known message, since a harness
almost always repeats its last request; canonical digests are computed only for messages never seen before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nemo_gym_polar.chat import Conversation, Message, Tool
from nemo_gym_polar.forest.canonical import digest_bytes, message_digest, tools_digest
from nemo_gym_polar.forest.echo import call_ids, compare
from nemo_gym_polar.forest.turn import Cause


@dataclass(slots=True, eq=False)
class Node:
    """`message` after the history above it; a root has none and stands for a set of tools.

    `digest` chains the canonical messages from the root to here. `requests` are the turns that were asked here,
    `replies` the children that answered them, `answers` the turns that said this message. `echo` is how the harness
    last repeated it where that differs, `drift` in what.
    """

    index: int
    parent: Node | None
    depth: int
    message: Message | None
    digest: bytes
    tools: tuple[Tool, ...]
    requests: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()
    replies: tuple[Node, ...] = ()
    latest: Node | None = None
    echo: Message | None = None
    drift: Cause | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a history is known: `node` is its last known message, `answered` the last one that a turn sampled."""

    node: Node
    answered: Node | None


class MessageTree:
    """Nodes are numbered in the order of their making, so a journal can name them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._by_digest: dict[bytes, Node] = {}
        self._roots: list[Node] = []

    @property
    def roots(self) -> list[Node]:
        return self._roots

    def root(self, tools: tuple[Tool, ...]) -> Node | None:
        """The root of `tools`, if any conversation declared them before."""
        for root in reversed(self._roots):
            if root.tools == tools:
                return root
        return self._by_digest.get(tools_digest(tools)) if self._roots else None

    def add_root(self, tools: tuple[Tool, ...]) -> Node:
        digest = tools_digest(tools)
        known = self._by_digest.get(digest)
        if known is not None:
            return known
        root = self._node(None, None, digest, tools)
        self._roots.append(root)
        return root

    def walk(self, root: Node, messages: Iterable[Message]) -> Walk:
        node, answered = root, None
        for message in messages:
            child = node.latest
            # Inlined for speed: in a long session nearly all of a request is what the last one said.
            if child is None or (child.message is not message and child.echo is not message):
                child = self._equal(child, message) or self.child(node, message)
                if child is None:
                    break
            node = child
            if node.answers:
                answered = node
        return Walk(node, answered)

    def child(self, node: Node, message: Message) -> Node | None:
        """The child of `node` that says what `message` says; a reply may be repeated with harmless changes."""
        if message.role == "assistant" and node.replies:
            found = self._by_call_ids(node, message) or self._known(node, message) or self._loosely(node, message)
        else:
            found = self._known(node, message)
        if found is not None:
            node.latest, found.echo = found, message  # the next request says it the same way
        return found

    def _equal(self, child: Node | None, message: Message) -> Node | None:
        """`child`, if it says just that; the next request, read by the same `Recall`, has the very same message."""
        if child is None or (child.message != message and child.echo != message):
            return None
        if child.answers and child.message == message:
            child.message = message  # one copy of an answer: the harness's, which comes again
        else:
            child.echo = message
        return child

    def extend(self, node: Node, messages: Iterable[Message]) -> Node:
        """The node at the end of `messages` after `node`; what is missing is made."""
        for message in messages:
            node = self.child(node, message) or self.add(node, message)
        return node

    def add(self, node: Node, message: Message) -> Node:
        return self._node(node, message, digest_bytes(node.digest, message_digest(message)), node.tools)

    def add_reply(self, node: Node, message: Message) -> Node:
        """The node of an answer. One with tool calls is always new: its call ids tell it from a twin."""
        return (None if message.tool_calls else self._known(node, message)) or self.add(node, message)

    def link_reply(self, reply: Node, turn: int) -> None:
        """Note that `turn` answered with `reply`."""
        reply.answers += (turn,)
        if reply.parent is not None and reply not in reply.parent.replies:
            reply.parent.replies += (reply,)

    def _known(self, node: Node, message: Message) -> Node | None:
        return self._by_digest.get(digest_bytes(node.digest, message_digest(message)))

    def _by_call_ids(self, node: Node, message: Message) -> Node | None:
        ids = call_ids(message)
        same = (reply for reply in node.replies if ids and reply.message and call_ids(reply.message) == ids)
        return next((reply for reply in same if self._repeats(reply, message)), None)

    def _loosely(self, node: Node, message: Message) -> Node | None:
        return next((reply for reply in reversed(node.replies) if self._repeats(reply, message)), None)

    def _repeats(self, reply: Node, message: Message) -> bool:
        assert reply.message is not None
        echo = compare(reply.message, message)
        if echo.same:
            reply.drift = echo.drift
        return echo.same

    def path(self, node: Node) -> list[Node]:
        """From the first message to `node`, the root left out."""
        return list(_up(node))[::-1]

    def conversation(self, node: Node) -> Conversation:
        messages = tuple(step.message for step in self.path(node) if step.message is not None)
        return Conversation(messages, node.tools)

    def _node(self, parent: Node | None, message: Message | None, digest: bytes, tools: tuple[Tool, ...]) -> Node:
        depth = 0 if parent is None else parent.depth + 1
        node = Node(len(self.nodes), parent, depth, message, digest, tools)
        self.nodes.append(node)
        self._by_digest[digest] = node
        if parent is not None:
            parent.latest = node
        return node


def _up(node: Node) -> Iterator[Node]:
    while node.parent is not None:
        yield node
        node = node.parent
