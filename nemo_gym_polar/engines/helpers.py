# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Frozen models beside the policy: a harness may ask for one by its alias, and nothing of that is training data.

A helper is any server with Chat Completions. The harness's own sampling values reach it, and what it says goes back as
it came; there are no token ids, no turn and no trace of it. If the harness shows its words to the policy later, they
are context, like a tool's output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.chat import Choice, FinishReason, Request, Usage
from nemo_gym_polar.engines import openai_wire, replies
from nemo_gym_polar.engines.chat_server import CHAT_PATH
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.replies import Source

_FINISHES: Mapping[str, FinishReason] = {"length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls"}


class HelperSettings(BaseModel):
    """Where a helper is. `model` is its name there; `timeout` is in seconds of silence."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str
    model: str
    api_key: Annotated[str | None, Field(repr=False)] = None
    timeout: float = 600.0


@dataclass(frozen=True, slots=True)
class Helped:
    """A helper's answers and the usage that it states."""

    choices: tuple[Choice, ...]
    usage: Usage


class Helper:
    def __init__(self, alias: str, settings: HelperSettings) -> None:
        self.alias = alias
        self._model = settings.model
        self._replicas = Replicas([settings.url], api_key=settings.api_key, timeout=settings.timeout)
        self._source = Source(f"the helper {alias!r}", CHAT_PATH, "")

    async def answer(self, request: Request) -> Helped:
        """Raises `EngineError` if the helper fails."""
        body: dict[str, Any] = {
            "model": self._model,
            **openai_wire.asked(request.conversation),
            **openai_wire.given(request.sampling),
        }
        if "tools" in body and request.tool_choice != "auto":
            body["tool_choice"] = _tool_choice(request.tool_choice)
        if request.n > 1:
            body["n"] = request.n
        reply = await self._replicas.post(CHAT_PATH, openai_wire.encode(body), session=self.alias)
        return self._read(replies.decoded(reply, self._source))

    def _read(self, answer: dict[str, Any]) -> Helped:
        replies.first_choice(answer, self._source)
        try:
            choices = tuple([_choice(choice) for choice in answer["choices"]])
        except (AttributeError, LookupError, TypeError) as error:
            raise replies.malformed(self._source, f"its choices are {answer['choices']!r:.80}") from error
        return Helped(choices, _usage(answer.get("usage")))

    async def close(self) -> None:
        await self._replicas.close()


def _tool_choice(asked: str) -> Any:
    kind, colon, name = asked.partition(":")
    return {"type": kind, kind: {"name": name}} if colon else asked


def _choice(choice: dict[str, Any]) -> Choice:
    finish = _FINISHES.get(choice.get("finish_reason") or "", "stop")
    return Choice(openai_wire.answered(choice), finish)


def _usage(usage: Any) -> Usage:
    stated = usage if isinstance(usage, dict) else {}
    details = stated.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=stated.get("prompt_tokens") or 0,
        completion_tokens=stated.get("completion_tokens") or 0,
        cached_tokens=replies.cached(stated) or 0,
        reasoning_tokens=details.get("reasoning_tokens") or 0,
    )
