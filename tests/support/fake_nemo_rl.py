# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""NeMo RL's policy server on the wire: two routes, assertions that end in a bare 500, tokens in the message.

`temperature` and `top_p` are the trainer's. Given `required_prefix_token_ids` it believes them, as the real one does:
they take the place of whatever the template makes of the messages up to the last assistant message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.support.fake_engine import END, FakeEngine, Fault

_FLOOR = -9999.0


@dataclass(slots=True)
class FakeNeMoRL(FakeEngine):
    temperature: float = 1.0
    top_p: float = 1.0
    max_model_len: int = 1 << 16
    served_name: str = "tiny"

    def _add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/chat/completions", self._chat)
        router.add_post("/tokenize", self._tokenize)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body.get("top_k") not in (None, -1) or not self._samples_like_the_trainer(body):
            return web.Response(status=500, text="Internal Server Error")
        if refused := self._refuse(body):
            return refused
        try:
            context = self._prompt(body)
        except LookupError:
            return web.Response(status=500, text="Internal Server Error")
        room = self.max_model_len - len(context)
        if room <= 0 and "max_tokens" in body:
            said = f"Prompt length ({len(context)}) fills or exceeds max_model_len ({self.max_model_len}). No room for"
            return _error(400, f"{said} output tokens.")
        served = await self._sample(
            request.path, context, {**body, "max_tokens": min(body.get("max_tokens", 512), room)}
        )
        message = self._parse(served, body)
        if body.get("logprobs"):
            message["prompt_token_ids"] = served.context
            message["generation_token_ids"] = served.sampled
            message["generation_log_probs"] = served.logprobs
        content = [
            {"token": f"token_id:{token}", "logprob": one, "bytes": None, "top_logprobs": []}
            for token, one in zip(served.sampled, served.logprobs, strict=True)
        ]
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "logprobs": {"content": content} if body.get("logprobs") else None,
            "finish_reason": "tool_calls" if message["tool_calls"] else self._finish(served),
            "stop_reason": None,
        }
        return await self._reply(request, {"object": "chat.completion", "choices": [choice], "usage": {}}, choice)

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await request.json()
        if refused := self._refuse(body):
            return refused
        assert self._tokenizer is not None
        tokens = self._prompt(body) if "messages" in body else list(self._tokenizer.encode(body["prompt"]).ids)
        return web.json_response({"count": len(tokens), "max_model_len": self.max_model_len, "tokens": tokens})

    def _samples_like_the_trainer(self, body: dict[str, Any]) -> bool:
        return (body.get("temperature"), body.get("top_p")) == (self.temperature, self.top_p)

    def _refuse(self, body: dict[str, Any]) -> web.Response | None:
        if body.get("model", self.served_name) != self.served_name:
            return _error(404, f"The model `{body['model']}` does not exist.")
        if body.get("logprobs") and body.get("top_logprobs") is None:
            return _error(400, "`top_logprobs` must be set when requesting token information")
        return None

    def _prompt(self, body: dict[str, Any]) -> list[int]:
        rendered = self._render(body)
        prefix: list[int] = body.get("required_prefix_token_ids") or []
        if not prefix:
            return rendered
        assert self._tokenizer is not None
        end = self._tokenizer.token_to_id(END)
        return prefix[: len(prefix) - (prefix[-1] == end)] + rendered[self._boundary(body, rendered, end) :]

    def _boundary(self, body: dict[str, Any], rendered: list[int], end: int) -> int:
        """Where the last assistant message ends in the whole prompt, found by counting end tokens."""
        messages = body["messages"]
        last = max((at for at, one in enumerate(messages) if one["role"] == "assistant"), default=len(messages) - 1)
        before = self._render({**body, "messages": messages[: last + 1]}, opened=False)
        ends = [at for at, token in enumerate(rendered) if token == end]
        return ends[before.count(end) - 1]

    def _spoil(self, choice: dict[str, Any], body: dict[str, Any], fault: Fault) -> None:
        message = choice["message"]
        match fault:
            case "no_ids" | "text_only":
                for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs"):
                    message.pop(name)
                choice["logprobs"] = None
            case "null_ids":
                message["prompt_token_ids"] = None
            case "no_logprobs":
                message.pop("generation_log_probs")
                choice["logprobs"] = None
            case "nan" | "positive" | "minus_infinity":
                said = {"nan": None, "positive": 0.5, "minus_infinity": _FLOOR}[fault]
                message["generation_log_probs"][0] = said
            case "misaligned":
                message["generation_log_probs"].pop()
            case "other_ids":
                message["generation_token_ids"] = [
                    message["generation_token_ids"][0] + 1,
                    *message["generation_token_ids"][1:],
                ]
            case "abort":
                choice["finish_reason"] = "abort"


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "code": status}
    return web.json_response({"error": error}, status=status)
