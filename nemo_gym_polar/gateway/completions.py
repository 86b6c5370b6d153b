# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A session's model calls as JSON: what was asked, what was answered, and its tokens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.turn import Turn
from nemo_gym_polar.gateway.chat_form import chat_messages, chat_tool


def completions(forest: TurnStore) -> list[dict[str, Any]]:
    """In the order of their answers; arrays are left to orjson."""
    return [_completion(forest, turn) for turn in forest.turns]


def _completion(forest: TurnStore, turn: Turn) -> dict[str, Any]:
    conversation = forest.conversation(turn)
    answer = forest.answer(turn)
    return {
        "completion_id": turn.response_id or f"{forest.session_id}-{turn.index}",
        "timestamp": turn.ended,
        "request": {
            "model": turn.model,
            "messages": [row for message in conversation.messages for row in chat_messages(message)],
            "tools": list(map(chat_tool, conversation.tools)),
            "temperature": turn.temperature,
        },
        "response": {
            "message": None if answer is None else chat_messages(answer)[-1],
            "finish_reason": turn.finish_reason,
            "prompt_token_ids": forest.context(turn.index),
            "token_ids": turn.sampled,
            "logprobs": turn.logprobs,
        },
        "metadata": {
            "turn": turn.index,
            "parent": turn.parent,
            "edge": turn.edge,
            "cause": turn.cause,
            "status": turn.status,
            "flags": sorted(turn.flags),
            "dialect": turn.dialect,
            "versions": [asdict(span) for span in turn.versions],
            "started": turn.started,
        },
    }
