# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A stock SGLang server.

Tokens mode asks its own `/generate` with token ids; what was sampled stands in `meta_info.output_token_logprobs`. Chat
mode asks `/v1/chat/completions`, which tells ids on request: older servers in the choice, newer ones under `sglext`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.engines import chat_replies, openai_wire, replies
from nemo_gym_polar.engines.base import Sampled
from nemo_gym_polar.engines.chat_server import CHAT_PATH, ChatServer
from nemo_gym_polar.engines.replicas import Replicas
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.engines.routed_experts import EXPERTS, read_experts
from nemo_gym_polar.tokens import NO_SIDE_ARRAYS, Int32, SideArrays, VersionSpan

_GENERATE = "/generate"
_STRIPPED = "a router in between may pass on the text only; give engine.urls the workers themselves"
_NO_CHAT_IDS = f"the server may be older than `return_token_ids` (then use engine.mode=tokens), or {_STRIPPED}"


class SGLang(ChatServer):
    """Both modes. `stop_token_ids` end an answer in tokens mode; in chat mode the server knows its own.

    `routed_experts` is how many experts it names for each token, layers times top-k; 0 asks for none. Tokens mode only.
    """

    KIND = "sglang"
    CHAT = Source(KIND, CHAT_PATH, _NO_CHAT_IDS, _STRIPPED)
    ASK: ClassVar[Mapping[str, Any]] = {
        "logprobs": True,
        "return_prompt_token_ids": True,
        "return_token_ids": True,
        "return_meta_info": True,
        "return_input_ids_in_sglext": True,
        "return_output_ids_in_sglext": True,
    }
    _TOKENS = Source(KIND, _GENERATE, _STRIPPED, _STRIPPED)

    def __init__(
        self, replicas: Replicas, *, model: str, stop_token_ids: Sequence[int] = (), routed_experts: int = 0
    ) -> None:
        super().__init__(replicas, model=model)
        self._stop_token_ids = list(stop_token_ids)
        self._experts = routed_experts

    async def sample(self, context: Int32, sampling: Sampling, *, session: str, known: int = 0) -> Sampled:
        body = {"input_ids": context, "sampling_params": self._parameters(sampling), "return_logprob": True}
        if self._experts:
            body |= {"return_routed_experts": True, "routed_experts_start_len": known}
        reply = await self._replicas.post(_GENERATE, openai_wire.encode(body), session=session)
        answer = replies.decoded(reply, self._TOKENS)
        sampled = _generated(answer, len(context), self._TOKENS)
        return replace(sampled, side=self._side(answer, len(context) + len(sampled.token_ids), known))

    def _side(self, answer: dict[str, Any], length: int, known: int) -> SideArrays:
        if not self._experts:
            return NO_SIDE_ARRAYS
        text = answer["meta_info"].get("routed_experts")
        return {EXPERTS: read_experts(text, self._experts, length, known, self._TOKENS)}

    def _parameters(self, sampling: Sampling) -> dict[str, Any]:
        parameters = openai_wire.parameters(sampling)
        for name in ("max_tokens", "seed", "response_format"):
            parameters.pop(name, None)
        # Left out, `max_new_tokens` would be 128; null is as many as fit. The end token is sampled, so it is kept.
        parameters |= {"max_new_tokens": sampling.max_tokens, "no_stop_trim": True, "skip_special_tokens": False}
        if sampling.seed is not None:
            parameters["sampling_seed"] = sampling.seed
        return {**parameters, "stop_token_ids": self._stop_token_ids}


def _generated(answer: dict[str, Any], context: int, source: Source) -> Sampled:
    meta = answer.get("meta_info")
    if not isinstance(meta, dict):
        raise replies.missing_ids(source, "meta_info")
    reason = meta.get("finish_reason")
    ended: dict[str, Any] = reason if isinstance(reason, dict) else {"type": reason}
    finish = replies.finish(ended.get("type"), source, str(ended.get("message") or ""))
    triples = chat_replies.triples(meta, source)
    if triples is None:
        raise replies.missing_logprobs(source)
    named = [triple[1] for triple in triples]
    ids, logprobs = replies.paired(named, [triple[0] for triple in triples], source, what="output_token_logprobs")
    _require_agreement(answer, meta, named, context, source)
    version, stop, cached = meta.get("weight_version"), ended.get("matched"), meta.get("cached_tokens")
    return Sampled(
        ids,
        logprobs,
        finish,
        () if version is None else (VersionSpan(str(version), 0, len(ids)),),
        stop=stop if isinstance(stop, str) else None,
        cached=cached if isinstance(cached, int) else None,
        versions_by_token=False,
    )


def _require_agreement(
    answer: dict[str, Any], meta: dict[str, Any], named: list[int], context: int, source: Source
) -> None:
    """Everything that the server says twice must agree, and it must have read the whole context."""
    if answer.get("output_ids") not in (None, named):
        raise replies.misaligned(source, "output_ids are other tokens than output_token_logprobs names")
    if meta.get("completion_tokens") not in (None, len(named)):
        said = f"it sampled {meta['completion_tokens']} tokens but gave {len(named)} log-probabilities"
        raise replies.misaligned(source, said)
    if meta.get("prompt_tokens") not in (None, context):
        raise replies.misaligned(source, f"it read {meta['prompt_tokens']} tokens of the {context} that were sent")
