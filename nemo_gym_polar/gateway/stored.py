# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Answers that a harness asked to keep: `previous_response_id` goes on from one, `/v1/responses/{id}` shows it.

They live as long as their session. The history itself is in the forest; here is only which turn an answer belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nemo_gym_polar.chat import Completion, Message, Request
from nemo_gym_polar.dialects.base import CallError
from nemo_gym_polar.forest.forest import Forest


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer, what was asked, and the turn that holds both; a helper's answer is in none."""

    completion: Completion
    request: Request
    turn: int | None

    def history(self, forest: Forest) -> tuple[Message, ...]:
        """What was asked and answered, without what was for that one call only."""
        if self.turn is None:
            asked, answer = self.request.conversation.messages, self.completion.first.message
            return (*asked[self.request.instructions :], answer)
        turn = forest[self.turn]
        told = forest.answer(turn)
        return forest.conversation(turn).messages[self.request.instructions :] + ((told,) if told is not None else ())


class StoredResponses:
    def __init__(self) -> None:
        self._by_id: dict[str, StoredResponse] = {}

    def keep(self, completion: Completion, request: Request, turn: int | None) -> None:
        """Without the history where the forest has it: a harness that repeats it would fill memory with copies."""
        if turn is not None:
            request = replace(request, conversation=replace(request.conversation, messages=()))
        self._by_id[completion.id] = StoredResponse(completion, request, turn)

    def find(self, response_id: str) -> StoredResponse:
        """Raises `CallError` for an answer that this session does not hold."""
        try:
            return self._by_id[response_id]
        except KeyError:
            raise CallError("not_found", f"Response with id '{response_id}' not found.", param="id") from None

    def delete(self, response_id: str) -> None:
        self.find(response_id)
        del self._by_id[response_id]

    def resume(self, forest: Forest, request: Request) -> Request:
        """`request` with the history of the answer that it goes on from; that call's own instructions are left out."""
        if request.previous is None:
            return request
        before = self._by_id.get(request.previous)
        if before is None:
            message = f"Previous response with id '{request.previous}' not found."
            raise CallError("invalid_request", message, param="previous_response_id")
        own, new = request.conversation.messages, request.instructions
        messages = own[:new] + before.history(forest) + own[new:]
        return replace(request, conversation=replace(request.conversation, messages=messages))
