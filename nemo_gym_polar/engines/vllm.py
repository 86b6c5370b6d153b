# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A stock vLLM server, and every server with its API: the embedded policy has it too.

Tokens mode asks `/inference/v1/generate`, which answers with integer ids and weight versions; a server that does not
offer it (it needs `--enable-scale-out`) is asked by `/v1/completions` with a prompt of token ids. Chat mode asks
`/v1/chat/completions` with `return_token_ids`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from nemo_gym_polar.chat import Conversation, Message, Part, Reasoning, Sampling, Text, ToolCall
from nemo_gym_polar.engines import openai_wire, vllm_replies
from nemo_gym_polar.engines.base import EngineError, Rendered, Sampled
from nemo_gym_polar.engines.replicas import Replicas, Reply
from nemo_gym_polar.tokens import Int32

_GENERATE = "/inference/v1/generate"
_COMPLETIONS = "/v1/completions"
_CHAT = "/v1/chat/completions"
_TOKENIZE = "/tokenize"

# Said aloud, because a server fills in what is missing from the model's generation_config.json.
_UNTOUCHED = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}

_Body = dict[str, Any]


class VLLM:
    """Both modes. `stop_token_ids` end an answer in tokens mode; in chat mode the server knows its own."""

    def __init__(self, replicas: Replicas, *, model: str, stop_token_ids: Sequence[int] = ()) -> None:
        self.model = model
        self._replicas = replicas
        self._stop_token_ids = list(stop_token_ids)
        self._has_generate = True

    async def sample(self, context: Int32, sampling: Sampling, *, session: str) -> Sampled:
        if self._has_generate:
            reply = await self._generate(context, sampling, session)
            if reply.status not in (403, 404):
                return vllm_replies.generated(vllm_replies.choice(reply, _GENERATE), _GENERATE)
            self._has_generate = False
        body: _Body = {"model": self.model, "prompt": context, "return_token_ids": True, **self._parameters(sampling)}
        reply = await self._replicas.post(_COMPLETIONS, _encode(body), session=session)
        return vllm_replies.completed(vllm_replies.choice(reply, _COMPLETIONS), _COMPLETIONS)

    async def _generate(self, context: Int32, sampling: Sampling, session: str) -> Reply:
        body: _Body = {"model": self.model, "token_ids": context, "sampling_params": self._parameters(sampling)}
        return await self._replicas.post(_GENERATE, _encode(body), session=session)

    async def chat(self, conversation: Conversation, sampling: Sampling, *, session: str) -> Rendered:
        body: _Body = {
            "model": self.model,
            "messages": openai_wire.messages(conversation.messages),
            "logprobs": True,
            "return_token_ids": True,
            **_parameters(sampling),
        }
        if tools := openai_wire.tools(conversation.tools):
            body["tools"] = tools
        if sampling.schema is not None:
            body["response_format"] = _response_format(sampling.schema)
        reply = await self._replicas.post(_CHAT, _encode(body), session=session)
        answer = vllm_replies.decoded(reply, _CHAT)
        choice = vllm_replies.choice(reply, _CHAT)
        sampled = replace(vllm_replies.chatted(choice, _CHAT), cached=vllm_replies.cached(answer))
        return Rendered(vllm_replies.prompt_ids(answer, choice, _CHAT), sampled, _message(choice))

    async def count(self, conversation: Conversation, *, session: str) -> int:
        body: _Body = {"model": self.model, "messages": openai_wire.messages(conversation.messages)}
        if tools := openai_wire.tools(conversation.tools):
            body["tools"] = tools
        reply = await self._replicas.post(_TOKENIZE, _encode(body), session=session)
        return vllm_replies.count(reply, _TOKENIZE)

    def _parameters(self, sampling: Sampling) -> dict[str, Any]:
        return {**_parameters(sampling), "logprobs": 0, "stop_token_ids": self._stop_token_ids}

    async def check(self) -> None:
        """Raises `EngineError` unless the server answers."""
        reply = await self._replicas.get("/v1/models")
        if reply.status != 200:
            raise EngineError(f"The engine at {self._replicas.urls[0]} answered /v1/models with {reply.status}.")

    def release(self, session: str) -> None:
        self._replicas.release(session)

    async def close(self) -> None:
        await self._replicas.close()


def _encode(body: _Body) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)


def _parameters(sampling: Sampling) -> dict[str, Any]:
    given = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
    }
    return {**_UNTOUCHED, **{name: value for name, value in given.items() if value is not None}}


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    if not schema:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}


def _message(choice: dict[str, Any]) -> Message:
    wire = choice.get("message") or {}
    parts: list[Part] = []
    if reasoning := wire.get("reasoning") or wire.get("reasoning_content"):
        parts.append(Reasoning(reasoning))
    if text := wire.get("content"):
        parts.append(Text(text))
    for call in wire.get("tool_calls") or []:
        function = call["function"]
        parts.append(ToolCall(call.get("id") or "", function["name"], function.get("arguments") or ""))
    return Message("assistant", tuple(parts))
