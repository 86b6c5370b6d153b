# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The policy server inside NeMo RL's vLLM workers (`policy.generation.vllm_cfg.expose_http_server`).

It renders and parses, so chat mode only. It refuses sampling values other than the trainer's, and tells its tokens in
the message. Given the tokens that a conversation goes on from (`required_prefix_token_ids`), it keeps them and renders
only what follows; it believes whatever it is given, so it is given only what the forest has proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from nemo_gym_polar.chat import Conversation, Sampling
from nemo_gym_polar.engines import openai_wire, replies
from nemo_gym_polar.engines.base import EngineError, Rendered
from nemo_gym_polar.engines.chat_server import CHAT_PATH, ChatServer
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.tokens import Int32

_FLOOR = -9999.0  # what NeMo RL writes for a log-probability of minus infinity
_TOKENIZE = "/tokenize"
_NO_IDS = (
    "NeMo RL's policy server puts prompt_token_ids, generation_token_ids and generation_log_probs into the message; "
    "engine.urls may name another server, or a proxy in between that strips them"
)


class NeMoRL(ChatServer):
    KIND = "nemo_rl"
    CHAT = Source(KIND, CHAT_PATH, _NO_IDS, _NO_IDS)
    ASK: ClassVar[Mapping[str, Any]] = {"logprobs": True, "top_logprobs": 0}

    async def chat(
        self, conversation: Conversation, sampling: Sampling, *, session: str, prefix: Int32 | None = None
    ) -> Rendered:
        if sampling.top_k not in (None, -1):
            said = f"sampling.top_k={sampling.top_k}: NeMo RL's policy server samples from all tokens; set it to -1."
            raise EngineError(said, fault="unsupported", status=400)
        try:
            rendered = await super().chat(conversation, sampling, session=session, prefix=prefix)
        except EngineError as error:
            if error.fault == "status" and error.status == 502:
                raise EngineError(f"{error} {_assertions(sampling)}") from error
            raise
        _require_probable(rendered)
        return rendered

    def _continuing(self, prefix: Int32 | None) -> dict[str, Any]:
        return {} if prefix is None else {"required_prefix_token_ids": prefix}

    async def check(self) -> None:
        """The server has no list of models and no health page, so it is asked to tokenise a word."""
        source = Source(self.KIND, _TOKENIZE, "")
        body = openai_wire.encode({"model": self.model, "prompt": "polar"})
        try:
            reply = await self._replicas.post(_TOKENIZE, body, session="check")
        finally:
            self._replicas.release("check")
        replies.count(replies.decoded(reply, source), source)


def _assertions(sampling: Sampling) -> str:
    """The server answers a failed assertion with a bare 500; these are what it asserts."""
    return (
        "NeMo RL's policy server asserts that temperature and top_p equal policy.generation.temperature and .top_p "
        f"(or the val_ ones); the gateway sent temperature={sampling.temperature} and top_p={sampling.top_p}: set the "
        "gateway's sampling values to the trainer's. If they agree, the worker's own log says what failed."
    )


def _require_probable(rendered: Rendered) -> None:
    if (rendered.sampled.logprobs <= _FLOOR).any():
        said = f"{CHAT_PATH}: a log-probability is {_FLOOR}, NeMo RL's mark for minus infinity; it can't be trained on."
        raise EngineError(said, fault="not_finite")
