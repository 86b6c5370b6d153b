# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A stock vLLM server, and every server with its API: the embedded policy has it too.

Tokens mode asks `/inference/v1/generate`, which answers with integer ids and weight versions; a server that does not
offer it (it needs `--enable-scale-out`) is asked by `/v1/completions` with a prompt of token ids. Chat mode asks
`/v1/chat/completions` with `return_token_ids`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.engines import openai_wire, replies, vllm_replies
from nemo_gym_polar.engines.base import Sampled
from nemo_gym_polar.engines.chat_server import CHAT_PATH, ChatServer
from nemo_gym_polar.engines.replicas import Replicas, Reply
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.tokens import Float32, Int32

logger = logging.getLogger(__name__)

NO_IDS = "a router in between may strip them, or the server is older than `return_token_ids`"
GENERATE = "/inference/v1/generate"
_COMPLETIONS = "/v1/completions"
_WEIGHTS = "/weight_info"
_NO_VERSIONS = (
    "The engine answered %s with %d; from now on %s is asked, which tells no weight versions. "
    "To have them, start vLLM with --enable-scale-out."
)


class VLLM(ChatServer):
    """Both modes. `stop_token_ids` end an answer in tokens mode; in chat mode the server knows its own."""

    KIND = "vllm"
    CHAT = Source(KIND, CHAT_PATH, NO_IDS)
    ASK: ClassVar[Mapping[str, Any]] = {"logprobs": True, "return_token_ids": True}

    def __init__(self, replicas: Replicas, *, model: str, stop_token_ids: Sequence[int] = ()) -> None:
        super().__init__(replicas, model=model)
        self._stop_token_ids = list(stop_token_ids)
        self._has_generate = True

    async def sample(self, context: Int32, sampling: Sampling, *, session: str, known: int = 0) -> Sampled:
        if not self._has_generate:
            return await self._complete(context, sampling, session)
        reply = await self._generate(context, sampling, session)
        if reply.status not in (403, 404):
            source = Source(self.KIND, GENERATE, NO_IDS)
            return vllm_replies.generated(replies.first_choice(replies.decoded(reply, source), source), source)
        sampled = await self._complete(context, sampling, session)
        self._has_generate = False  # not before: a wrong engine.model is a 404, too
        logger.warning(_NO_VERSIONS, GENERATE, reply.status, _COMPLETIONS)
        return sampled

    async def _generate(self, context: Int32, sampling: Sampling, session: str) -> Reply:
        body = {"model": self.model, "token_ids": context, "sampling_params": self._parameters(sampling)}
        return await self._replicas.post(GENERATE, openai_wire.encode(body), session=session)

    async def _complete(self, context: Int32, sampling: Sampling, session: str) -> Sampled:
        body = {"model": self.model, "prompt": context, "return_token_ids": True, **self._parameters(sampling)}
        reply = await self._replicas.post(_COMPLETIONS, openai_wire.encode(body), session=session)
        source = Source(self.KIND, _COMPLETIONS, NO_IDS)
        return vllm_replies.completed(replies.first_choice(replies.decoded(reply, source), source), source)

    async def score(self, tokens: Int32) -> Float32:
        """See `ScoringEngine`. One more token has to fit in the model's context, since vLLM samples at least one."""
        asked = {"prompt_logprobs": 0, "max_tokens": 1, "temperature": 1.0}
        body = {"model": self.model, "prompt": tokens, **asked}
        reply = await self._replicas.post(_COMPLETIONS, openai_wire.encode(body), session="score")
        source = Source(self.KIND, _COMPLETIONS, NO_IDS)
        return vllm_replies.scored(replies.first_choice(replies.decoded(reply, source), source), tokens, source)

    async def weight_version(self) -> str | None:
        """See `ScoringEngine`. A stock server tells only if it was started with VLLM_SERVER_DEV_MODE=1."""
        reply = await self._replicas.get(_WEIGHTS)
        if reply.status in (403, 404, 405):
            return None
        version = replies.decoded(reply, Source(self.KIND, _WEIGHTS, NO_IDS)).get("weight_version")
        return None if version is None else str(version)

    def _parameters(self, sampling: Sampling) -> dict[str, Any]:
        parameters = openai_wire.parameters(sampling)
        parameters.pop("response_format", None)
        return {**parameters, "logprobs": 0, "stop_token_ids": self._stop_token_ids}
