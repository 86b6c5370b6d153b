# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A call that asks for a helper model: answered in the harness's dialect, and no part of the session's forest.

It takes a slot and heeds the deadline like any call, but it is no turn, and its tokens are not the session's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nemo_gym_polar.chat import Choice, Completion, Message, Request, ToolCall
from nemo_gym_polar.engines.helpers import Helper
from nemo_gym_polar.gateway.session import Call, Session


async def ask_helper(
    helper: Helper, session: Session, request: Request, call: Call, mint: Callable[[], str]
) -> Completion:
    """The helper's answer to `request`. Raises `EngineError` if it fails."""
    async with session.slots:
        session.budget.admit(0)
        helped = await helper.answer(request)
    choices = tuple([replace(choice, message=renamed(choice.message, mint)) for choice in helped.choices])
    return Completion(call.response_id, call.created, request.model, _finished(choices), helped.usage)


def _finished(choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """Some servers say «stop» of an answer that calls tools."""
    return tuple(
        replace(choice, finish_reason="tool_calls")
        if choice.finish_reason == "stop" and choice.message.tool_calls
        else choice
        for choice in choices
    )


def renamed(message: Message, mint: Callable[[], str]) -> Message:
    """Ids are minted here, so that no two calls of a session share one."""
    parts = tuple([replace(part, id=mint()) if isinstance(part, ToolCall) else part for part in message.parts])
    return Message(message.role, parts)
