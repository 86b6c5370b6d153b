# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a harness is told once its session's budget has run out.

An error of the provider, or a last answer. The policy never sampled that answer, so it is recorded as a turn without
tokens: nothing of it can be trained on, and the journal says where the words came from.
"""

from __future__ import annotations

import time

import numpy as np

from nemo_gym_polar.chat import Choice, Completion, Message, Request, Text, Usage
from nemo_gym_polar.forest.turn import Flag, Generation, Status
from nemo_gym_polar.gateway.budget import BudgetError
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.session import Call, Session

_NO_IDS = np.empty(0, np.int32)
_NO_LOGPROBS = np.empty(0, np.float32)
_NO_USAGE = Usage(prompt_tokens=0, completion_tokens=0)


async def over_budget(
    gateway: Gateway, session: Session, request: Request, call: Call, error: BudgetError
) -> Completion:
    """Mark the session; then the last answer, or `error` again. Raises `BudgetError`, `JournalError`."""
    budget = session.budget
    first = budget.exhausted is None
    budget.exhausted = budget.exhausted or error.exhausted
    gateway.metrics.count_exhausted(error.exhausted.budget, budget.when_exhausted, first=first)
    if budget.when_exhausted == "error":
        raise error
    message = Message("assistant", (Text(error.message),))
    await _record(session, request, call, message)
    choices = (Choice(message, "stop"),) * request.n
    return Completion(call.response_id, call.created, request.model, choices, _NO_USAGE)


async def _record(session: Session, request: Request, call: Call, message: Message) -> None:
    call.committing = True
    now = time.time()
    generation = Generation(
        context=_NO_IDS,
        sampled=_NO_IDS,
        logprobs=_NO_LOGPROBS,
        message=message,
        status=Status.FAILED,
        flags=frozenset({Flag.EXHAUSTED}),
        response_id=call.response_id,
        model=request.model,
        dialect=request.dialect,
        started=now,
        ended=now,
    )
    match = session.recorder.match(request.conversation, request.hints)
    call.turns.append(await session.recorder.record(match, generation))
