# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What all engines do that answer Chat Completions; each adds how it is asked for tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from nemo_gym_polar.chat import Conversation, Sampling
from nemo_gym_polar.engines import chat_replies, openai_wire, replies
from nemo_gym_polar.engines.base import EngineError, Rendered, ReplicaState
from nemo_gym_polar.engines.pressure import PAGE, together
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.tokens import Int32

CHAT_PATH = "/v1/chat/completions"
_TOKENIZE = "/tokenize"
_PATIENCE = 2.0  # seconds that an engine has to say how full it is


class ChatServer:
    """`KIND` is its name in the settings, `CHAT` where its chat replies come from, `ASK` what makes it tell tokens."""

    KIND: ClassVar[str]
    CHAT: ClassVar[Source]
    ASK: ClassVar[Mapping[str, Any]]

    def __init__(self, replicas: Replicas, *, model: str) -> None:
        self.model = model
        self._replicas = replicas

    async def chat(
        self, conversation: Conversation, sampling: Sampling, *, session: str, prefix: Int32 | None = None
    ) -> Rendered:
        asked = {"model": self.model, **openai_wire.asked(conversation), **openai_wire.parameters(sampling)}
        body = {**asked, **self.ASK, **self._continuing(prefix)}
        reply = await self._replicas.post(CHAT_PATH, openai_wire.encode(body), session=session)
        answer = replies.decoded(reply, self.CHAT)
        choice = replies.first_choice(answer, self.CHAT)
        try:
            message = openai_wire.answered(choice)
        except (AttributeError, LookupError, TypeError) as error:
            raise replies.malformed(self.CHAT, f"its message is {choice.get('message')!r:.80}") from error
        prompt, sampled = chat_replies.read(answer, choice, self.CHAT)
        return Rendered(prompt, sampled, message)

    def _continuing(self, prefix: Int32 | None) -> dict[str, Any]:
        """How this engine is told to keep the tokens that the conversation goes on from; most can't be."""
        return {}

    async def count(self, conversation: Conversation, *, session: str) -> int:
        body = {"model": self.model, **openai_wire.asked(conversation)}
        source = Source(self.KIND, _TOKENIZE, "")
        reply = await self._replicas.post(_TOKENIZE, openai_wire.encode(body), session=session)
        return replies.count(replies.decoded(reply, source), source)

    async def check(self) -> None:
        """Raises `EngineError` unless the server answers."""
        reply = await self._replicas.get("/v1/models")
        if reply.status != 200:
            raise EngineError(f"The engine at {self._replicas.shown[0]} answered /v1/models with {reply.status}.")

    def join(self, session: str, group: str) -> None:
        self._replicas.join(session, group)

    def release(self, session: str) -> None:
        self._replicas.release(session)

    def replicas(self) -> list[ReplicaState]:
        return self._replicas.states()

    async def pressure(self) -> float | None:
        pages = [reply.body for reply in await self._replicas.each(PAGE, _PATIENCE) if reply.status == 200]
        return together([page.decode(errors="replace") for page in pages])

    async def close(self) -> None:
        await self._replicas.close()
