# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Is an assistant message in a history the answer that the gateway gave?

A harness may drop the thinking, and may parse tool arguments and write them anew, even repair them or rename the tool.
Under the call ids that the gateway minted that is still the same answer. Changed words or changed thinking are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from nemo_gym_polar.chat import Message, ToolCall
from nemo_gym_polar.forest.canonical import canonical_arguments, thinking
from nemo_gym_polar.forest.turn import Cause


@dataclass(frozen=True, slots=True)
class Echo:
    """`drift` is what the harness changed in repeating the answer, if it is the `same` answer."""

    same: bool
    drift: Cause | None = None


_OTHER = Echo(same=False)


def call_ids(message: Message) -> frozenset[str]:
    return frozenset(call.id for call in message.tool_calls if call.id)


def compare(answer: Message, repeated: Message) -> Echo:
    """How `repeated`, found in a harness's history, relates to `answer`."""
    if answer.text.strip() != repeated.text.strip():
        return _OTHER
    thought, echoed = thinking(answer), thinking(repeated)
    stripped = bool(thought) and not echoed
    if not stripped and thought != echoed:
        return _OTHER
    changed = _calls(answer.tool_calls) != _calls(repeated.tool_calls)
    if changed and not (call_ids(answer) and call_ids(answer) == call_ids(repeated)):
        return _OTHER
    if changed:
        return Echo(same=True, drift=Cause.ARGUMENTS_CHANGED)
    return Echo(same=True, drift=Cause.THINKING_STRIPPED if stripped else None)


def _calls(calls: tuple[ToolCall, ...]) -> list[tuple[str, object]]:
    return [(call.name, canonical_arguments(call.arguments)) for call in calls]
