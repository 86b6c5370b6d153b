# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A history that is known is not compared again."""

from __future__ import annotations

from dataclasses import replace

from nemo_gym_polar.chat import Message, Text
from nemo_gym_polar.forest.tree import MessageTree

compared = 0


class Words(str):
    """A text that counts how often it is compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        global compared
        compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def says(index: int) -> Message:
    return Message("assistant" if index % 2 else "user", (Text(Words(f"message {index}")),))


def test_the_very_same_messages_are_not_compared() -> None:
    tree = MessageTree()
    root = node = tree.add_root(())
    for index in range(10):
        node = tree.add(node, says(index))
        if index % 2:
            tree.link_reply(node, index)
    repeated = [says(index) for index in range(10)]
    assert tree.walk(root, repeated).node is node
    assert compared
    before = compared
    assert tree.walk(root, repeated).node is node
    assert compared == before


def test_a_message_that_says_something_else_is_another() -> None:
    tree = MessageTree()
    root = tree.add_root(())
    node = tree.add(root, says(0))
    assert tree.walk(root, [says(0)]).node is node
    assert tree.walk(root, [replace(says(0), role="tool")]).node is root
    assert tree.walk(root, [says(2)]).node is root
