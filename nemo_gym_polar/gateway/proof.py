# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which tokens does a conversation provably go on from?

NeMo RL's policy server keeps the tokens that it is given without a look at the messages, up to the last assistant
message. So they are given only where the forest knows the whole history, and that message is the known answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from nemo_gym_polar.chat import Message
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.matching import Match
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import Int32


def proven_prefix(forest: Forest, match: Match) -> Int32 | None:
    """Context and answer of the turn that the conversation continues; None where it begins anew."""
    if match.parent is None:
        return None
    if match.continues:
        return None if _has_answer(match.new) else forest.tokens(match.parent)
    return _again(forest, match) if match.edge is Edge.RETRY else None


def _again(forest: Forest, match: Match) -> Int32 | None:
    """A question that is asked again goes on from where it went on the first time."""
    before = forest.previous(forest[match.parent]) if match.parent is not None else None
    if before is None or before.answer is None:
        return None
    answered = forest.tree.nodes[before.answer].depth
    return None if _has_answer(match.conversation.messages[answered:]) else forest.tokens(before.index)


def _has_answer(messages: Iterable[Message]) -> bool:
    return any(message.role == "assistant" for message in messages)
