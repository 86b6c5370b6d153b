# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A deterministic engine with vLLM's API, over the wire: it says what a script says and can fail in every known way.

Answers are encoded with the model's real tokenizer, log-probabilities are a function of position and token, and every
answer is kept in `served`, so that a test can compare what was recorded with what was sampled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web
from aiohttp.typedefs import Handler
from tokenizers import Tokenizer

from nemo_gym_polar.engines.rendering import Rendering
from nemo_gym_polar.engines.template import ChatTemplate, TemplateRefusalError

Fault = Literal[
    "die", "no_ids", "null_ids", "no_logprobs", "nan", "misaligned", "other_ids", "abort", "hang", "429", "500", "400",
    "overflow", "html", "positive", "bad_versions", "no_versions", "text_only", "short_read", "minus_infinity",
    "two_versions",
]  # fmt: skip
Script = Callable[[str], str]

END = "<|im_end|>"


def bash(command: str) -> str:
    """What a policy writes to call a shell tool."""
    return f"<tool_call>\n<function=bash>\n<parameter=command>\n{command}\n</parameter>\n</function>\n</tool_call>"


def done(_: str) -> str:
    return "Done."


@dataclass(slots=True)
class Served:
    """One generation: the context as ids, what was sampled, and the sampling parameters that were asked for."""

    path: str
    context: list[int]
    sampled: list[int]
    logprobs: list[float]
    parameters: dict[str, Any]


@dataclass(slots=True)
class FakeEngine:
    """`script` gets the decoded context and gives the answer's text; `faults` are used up one per call.

    `delay` is in seconds, `version` the weights' name. Answers wait for `gate`, if there is one. With `generate` False
    there is only `/v1/completions`. `page` is what Prometheus would read. Who calls without the `key`, if there is one,
    is refused.
    """

    tokenizer_directory: Path
    script: Script = done
    delay: float = 0.0
    gate: asyncio.Event | None = None
    version: str = "0"
    generate: bool = True
    page: str = ""
    faults: deque[Fault] = field(default_factory=deque)
    served: list[Served] = field(default_factory=list)
    aborted: int = 0
    running: int = 0
    url: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    key: str | None = None
    _runner: web.AppRunner | None = None
    _tokenizer: Tokenizer | None = None
    _template: ChatTemplate | None = None
    _rendering: Rendering | None = None

    async def __aenter__(self) -> Self:
        self._tokenizer = Tokenizer.from_file(str(self.tokenizer_directory / "tokenizer.json"))
        app = web.Application(client_max_size=1 << 30, middlewares=[self._guard])
        self._add_routes(app.router)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        host, self.port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{self.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def decoded(self, tokens: list[int]) -> str:
        assert self._tokenizer is not None
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=False)
        return text

    # Endpoints

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            return web.json_response({"error": {"message": "who are you?"}}, status=401)
        return await handler(request)

    def _add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/inference/v1/generate", self._generate)
        router.add_post("/v1/completions", self._completions)
        router.add_post("/v1/chat/completions", self._chat)
        router.add_post("/tokenize", self._tokenize)
        router.add_get("/v1/models", self._models)
        router.add_get("/metrics", self._metrics)

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        if not self.generate:
            return web.json_response({"error": {"message": "not offered"}}, status=403)
        body = await request.json()
        served = await self._sample(request.path, body["token_ids"], body["sampling_params"])
        content = [
            {"token_id": token, "logprob": logprob, "rank": 1, "top_logprobs": []}
            for token, logprob in zip(served.sampled, served.logprobs, strict=True)
        ]
        choice: dict[str, Any] = {
            "index": 0,
            "token_ids": served.sampled,
            "logprobs": {"content": content},
            "finish_reason": self._finish(served),
            "weight_versions": [{"version": self.version, "start": 0, "end": len(served.sampled)}],
        }
        return await self._reply(request, {"request_id": "1", "choices": [choice]}, choice)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        served = await self._sample(request.path, body["prompt"], body)
        choice: dict[str, Any] = {
            "index": 0,
            "token_ids": served.sampled,
            "prompt_token_ids": served.context,
            "logprobs": {"token_logprobs": served.logprobs, "tokens": ["?"] * len(served.sampled)},
            "finish_reason": self._finish(served),
        }
        return await self._reply(request, {"choices": [choice]}, choice)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert body["logprobs"] and body["return_token_ids"]
        try:
            context = self._render(body)
        except TemplateRefusalError as error:
            return web.json_response({"error": {"message": f"{error}: not a multimodal model"}}, status=400)
        served = await self._sample(request.path, context, body)
        choice: dict[str, Any] = {
            "index": 0,
            "token_ids": served.sampled,
            "logprobs": {"content": [{"token": "?", "logprob": value} for value in served.logprobs]},
            "finish_reason": self._finish(served),
            "message": self._parse(served, body),
        }
        return await self._reply(request, {"prompt_token_ids": served.context, "choices": [choice]}, choice)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=self.page) if self.page else web.Response(status=404)

    async def _tokenize(self, request: web.Request) -> web.Response:
        tokens = self._render(await request.json())
        return web.json_response({"count": len(tokens), "max_model_len": 1 << 20, "tokens": tokens})

    # Sampling

    async def _sample(self, path: str, context: list[int], parameters: dict[str, Any]) -> Served:
        self.running += 1
        try:
            await asyncio.sleep(3600 if self.faults and self.faults[0] == "hang" else self.delay)
            if self.gate:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.aborted += 1
            if self.faults and self.faults[0] == "hang":
                self.faults.popleft()
            raise
        finally:
            self.running -= 1
        assert self._tokenizer is not None
        text = self.script(self._tokenizer.decode(context, skip_special_tokens=False)) + END
        sampled = self._tokenizer.encode(text, add_special_tokens=False).ids[: parameters.get("max_tokens", 4096)]
        served = Served(
            path, context, sampled, [_logprob(len(context) + i, t) for i, t in enumerate(sampled)], parameters
        )
        if not self.faults:
            self.served.append(served)
        return served

    def _finish(self, served: Served) -> str:
        assert self._tokenizer is not None
        return "stop" if served.sampled[-1:] == [self._tokenizer.token_to_id(END)] else "length"

    def _render(self, body: dict[str, Any], *, opened: bool = True) -> list[int]:
        """The prompt's tokens, with the answer's turn `opened` at its end."""
        self._template = self._template or ChatTemplate.load(self.tokenizer_directory)
        text = self._template.render(
            body["messages"], tools=body.get("tools"), add_generation_prompt=opened, enable_thinking=False
        )
        assert self._tokenizer is not None
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _parse(self, served: Served, body: dict[str, Any]) -> dict[str, Any]:
        from renderers import Qwen35RendererConfig, create_renderer

        from nemo_gym_polar.engines.tokenizer import FileTokenizer

        tokenizer = FileTokenizer.load(self.tokenizer_directory)
        renderer = create_renderer(tokenizer, Qwen35RendererConfig(enable_thinking=False))
        parsed = renderer.parse_response(served.sampled, tools=body.get("tools"), prompt_ids=served.context)
        calls = [
            {"id": "call_0", "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
            for c in parsed.tool_calls
        ]
        return {"role": "assistant", "content": parsed.content or None, "reasoning": None, "tool_calls": calls}

    # Faults

    async def _reply(self, request: web.Request, body: dict[str, Any], choice: dict[str, Any]) -> web.StreamResponse:
        match self.faults.popleft() if self.faults else None:
            case None:
                return web.json_response(body)
            case "die":
                return await self._die(request, body)
            case "429":
                return web.json_response({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "7"})
            case "500":
                return web.json_response({"error": {"message": "CUDA error"}}, status=500)
            case "400":
                return web.json_response({"error": {"message": "temperature must be non-negative"}}, status=400)
            case "overflow":
                said = "This model's maximum context length is 8 tokens. However, you requested 9 tokens."
                return web.json_response({"error": {"message": said}}, status=400)
            case "html":
                return web.Response(text="<html>proxy</html>", content_type="text/html")
            case fault:
                self._spoil(choice, body, fault)
                return web.json_response(text=json.dumps(body))

    def _spoil(self, choice: dict[str, Any], body: dict[str, Any], fault: Fault) -> None:
        _spoil(choice, body, fault)

    async def _die(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        """Half an answer, then the connection breaks."""
        response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "100000"})
        await response.prepare(request)
        await response.write(json.dumps(body).encode()[:50])
        assert request.transport is not None
        request.transport.abort()
        return response


def _spoil(choice: dict[str, Any], body: dict[str, Any], fault: Fault) -> None:
    content = choice["logprobs"].get("content") or []
    plain = choice["logprobs"].get("token_logprobs") or []
    match fault:
        case "no_ids":
            for holder in (choice, body):
                holder.pop("token_ids", None)
                holder.pop("prompt_token_ids", None)
        case "null_ids":
            choice["token_ids"] = None
        case "no_logprobs":
            choice["logprobs"] = None
        case "nan" | "positive":
            value = float("nan") if fault == "nan" else 0.5
            for entry in content[:1]:
                entry["logprob"] = None if fault == "nan" else value
            plain[:1] = [None if fault == "nan" else value]
        case "misaligned":
            (content or plain).pop()
        case "other_ids":
            for entry in content[:1]:
                entry["token_id"] = 1 + choice["token_ids"][0]
        case "abort":
            choice["finish_reason"] = "abort"
        case "bad_versions":
            choice["weight_versions"] = [{"version": "0", "start": 1, "end": 2}]
        case "no_versions":
            choice.pop("weight_versions", None)
        case "two_versions":
            old, new = {"version": "old", "start": 0, "end": 1}, {"version": "new", "start": 1}
            choice["weight_versions"] = [old, {**new, "end": len(choice["token_ids"])}]


def _logprob(position: int, token: int) -> float:
    return -((position * 7919 + token * 104729) % 4000) / 1000.0


async def _main() -> None:
    parser = argparse.ArgumentParser(description="Serve until stdin closes; prints the URL.")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    arguments = parser.parse_args()
    async with FakeEngine(arguments.tokenizer, delay=arguments.delay, port=arguments.port) as engine:
        print(engine.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
