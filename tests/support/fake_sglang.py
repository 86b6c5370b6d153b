# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""SGLang's wire: `/generate` and Chat Completions, as strict about requests as the real server is.

What it samples is what `FakeEngine` samples. `sglext` is a newer server, which tells a chat's ids beside the choices;
`chat_ids` False is a server that is too old to tell them. `experts` is how many each token is sent to, if it was
started to tell; a server without `experts_from_start` always tells of all tokens. `controls` are the calls that changed
its weights.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web
from numpy.typing import NDArray

from tests.support.fake_engine import FakeEngine, Fault, Served

_PARAMETERS = {
    "max_new_tokens", "stop", "stop_token_ids", "stop_regex", "temperature", "top_p", "top_k", "min_p",
    "frequency_penalty", "presence_penalty", "repetition_penalty", "min_new_tokens", "n", "json_schema", "regex",
    "ebnf", "structural_tag", "ignore_eos", "skip_special_tokens", "spaces_between_special_tokens", "no_stop_trim",
    "custom_params", "stream_interval", "logit_bias", "sampling_seed",
}  # fmt: skip
_NO_LIMIT = 4096


@dataclass(slots=True)
class FakeSGLang(FakeEngine):
    sglext: bool = False
    chat_ids: bool = True
    experts: int = 0
    experts_from_start: bool = True
    controls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def _add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/generate", self._native)
        router.add_post("/v1/chat/completions", self._chat)
        router.add_post("/tokenize", self._tokenize)
        router.add_get("/v1/models", self._models)
        for name in ("pause_generation", "update_weights_from_disk", "continue_generation"):
            router.add_post(f"/{name}", self._control)

    async def _control(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.controls.append((request.path, body))
        if "model_path" not in body:
            return web.json_response({"status": "ok"})
        if not _is_there(body["model_path"]):
            return web.json_response({"success": False, "message": "no such model"}, status=400)
        self.version = body["weight_version"]
        return web.json_response({"success": True, "message": "Succeeded to update model weights."})

    async def _native(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        parameters = body.get("sampling_params") or {}
        if unknown := parameters.keys() - _PARAMETERS:
            return _refused(f"SamplingParams.__init__() got an unexpected keyword argument '{min(unknown)}'")
        if parameters.get("top_k", -1) == 0:
            return _refused("top_k must be -1 (disable) or at least 1, got 0.")
        limit = parameters.get("max_new_tokens", 128)
        served = await self._sample(
            request.path, body["input_ids"], {**parameters, "max_tokens": _NO_LIMIT if limit is None else limit}
        )
        meta = self._meta(served)
        if not body.get("return_logprob"):
            del meta["output_token_logprobs"]
        if body.get("return_routed_experts") and self.experts:
            meta["routed_experts"] = self._routes(served, body.get("routed_experts_start_len", 0))
        reply = {"text": "?", "output_ids": served.sampled, "meta_info": meta}
        return await self._reply(request, reply, {"meta_info": meta, "output_ids": served.sampled})

    def _routes(self, served: Served, start: int) -> str:
        """Of every token that was read; the last one sampled never is. An older server knows no start."""
        rows = routes(served.context + served.sampled[:-1], self.experts)
        return b64encode(rows[start if self.experts_from_start else 0 :].tobytes()).decode()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body.get("stream") and body.get("return_token_ids"):
            return _refused("return_token_ids is not supported for streaming chat completions")
        served = await self._sample(request.path, self._render(body), body)
        choice = self._choice(served, body)
        reply: dict[str, Any] = {"object": "chat.completion", "choices": [choice], "usage": self._usage(served)}
        reply["metadata"] = {"weight_version": self.version}
        if self.sglext and body.get("return_input_ids_in_sglext") and body.get("return_output_ids_in_sglext"):
            reply["sglext"] = {"input_ids": served.context, "output_ids": [served.sampled]}
        return await self._reply(request, reply, choice)

    def _choice(self, served: Served, body: dict[str, Any]) -> dict[str, Any]:
        parsed = self._parse(served, body)
        message = {**{name: parsed[name] for name in ("role", "content", "tool_calls")}, "reasoning_content": None}
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": "tool_calls" if parsed["tool_calls"] else self._finish(served),
            "matched_stop": served.sampled[-1],
        }
        if body.get("logprobs"):
            content = [{"token": "?", "bytes": [63], "logprob": one, "top_logprobs": []} for one in served.logprobs]
            choice["logprobs"] = {"content": content}
        if self.chat_ids and not self.sglext:
            choice |= {"prompt_token_ids": served.context} if body.get("return_prompt_token_ids") else {}
            choice |= {"token_ids": served.sampled} if body.get("return_token_ids") else {}
        if body.get("return_meta_info"):
            choice["meta_info"] = self._meta(served)
        return choice

    def _meta(self, served: Served) -> dict[str, Any]:
        stopped = self._finish(served) == "stop"
        reason = {"type": "stop", "matched": served.sampled[-1]} if stopped else {"type": "length", "length": 1}
        triples = [[one, token, None] for one, token in zip(served.logprobs, served.sampled, strict=True)]
        return {
            "id": "1",
            "finish_reason": reason,
            "prompt_tokens": len(served.context),
            "weight_version": self.version,
            "completion_tokens": len(served.sampled),
            "cached_tokens": len(served.context) // 2,
            "e2e_latency": 0.1,
            "output_token_logprobs": triples,
        }

    def _usage(self, served: Served) -> dict[str, Any]:
        return {
            "prompt_tokens": len(served.context),
            "completion_tokens": len(served.sampled),
            "total_tokens": len(served.context) + len(served.sampled),
            "prompt_tokens_details": None,
            "reasoning_tokens": 0,
        }

    def _spoil(self, choice: dict[str, Any], body: dict[str, Any], fault: Fault) -> None:
        if fault in ("text_only", "no_ids", "null_ids"):
            body.pop("meta_info", None)
            body.pop("sglext", None)
            for name in ("meta_info", "prompt_token_ids", "token_ids", "output_ids"):
                choice.pop(name, None)
                body.pop(name, None)
        elif fault == "no_logprobs":
            choice.pop("logprobs", None)
            choice["meta_info"].pop("output_token_logprobs")
        elif fault == "abort":
            choice["finish_reason"] = "abort"
            choice["meta_info"]["finish_reason"] = {"type": "abort", "message": "Abort in waiting queue"}
        else:
            _spoil_tokens(choice["meta_info"], choice, fault)


def routes(tokens: Sequence[int], experts: int) -> NDArray[np.int32]:
    """Where the mixture sends tokens: a function of token and position; [T, experts]."""
    return np.array([[(token + at + one) % 128 for one in range(experts)] for at, token in enumerate(tokens)], np.int32)


def _is_there(directory: str) -> bool:
    return Path(directory).is_dir()


def _spoil_tokens(meta: dict[str, Any], choice: dict[str, Any], fault: Fault) -> None:
    triples = meta["output_token_logprobs"]
    match fault:
        case "nan" | "positive":
            triples[0][0] = None if fault == "nan" else 0.5
        case "misaligned":
            triples.pop()
        case "other_ids":
            triples[0][1] += 1
        case "short_read":
            meta["prompt_tokens"] -= 1
        case "no_versions":
            meta.pop("weight_version")


def _refused(message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=400)
