# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine that costs almost nothing, for conversations: the same shapes as vLLM's, answers prepared beforehand.

`python benchmarks/conversation_engine.py SCRIPT_JSON` prints its URL. The script holds `answers` by their number of
tokens (lists of `token_ids`, `text`, `name`, `arguments`, `logprobs`) and `stream`, the ids that prompts are made of.
`POST /shape` {"start", "sampled", "observed"} sets what the next conversations are like. In chat the prompt's ids are
those of the conversation so far: `start` ids of the stream, then each answer and `observed` further ids.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from listening import listen

Json = dict[str, Any]


class Conversation:
    """The answers of one shape, turn after turn, as bytes; each turn's is known before it is asked for."""

    def __init__(self, script: Json, start: int, sampled: int, observed: int) -> None:
        self.answers = script["answers"][str(sampled)]
        self.observed = observed
        self._stream = script["stream"]
        self._at = start
        self._prompt = _joined(self._stream[:start])
        self._ends: list[int] = []

    def answer(self, turn: int) -> Json:
        found: Json = self.answers[turn % len(self.answers)]
        return found

    def prompt(self, turn: int) -> bytes:
        """The ids of the prompt of a turn, comma-separated."""
        while len(self._ends) <= turn:
            self._ends.append(len(self._prompt))
            said = self.answer(len(self._ends) - 1)["token_ids"]
            at = self._at % (len(self._stream) - self.observed)
            self._at += self.observed
            self._prompt += b"," + _joined(said) + b"," + _joined(self._stream[at : at + self.observed])
        return self._prompt[: self._ends[turn]]

    def generated(self, turn: int) -> bytes:
        said = self.answer(turn)
        content = [
            {"token_id": token, "logprob": logprob, "rank": 1, "top_logprobs": []}
            for token, logprob in zip(said["token_ids"], said["logprobs"], strict=True)
        ]
        spans = [{"version": "1", "start": 0, "end": len(content)}]
        choice = {"index": 0, "token_ids": said["token_ids"], "logprobs": {"content": content}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": len(content), "total_tokens": len(content) + 1}
        return orjson.dumps({"request_id": "1", "choices": [{**choice, "weight_versions": spans}], "usage": usage})

    def completion(self, turn: int, *, ids: bool) -> bytes:
        said = self.answer(turn)
        function = {"name": said["name"], "arguments": said["arguments"]}
        call = {"id": f"chatcmpl-tool-{turn:032x}", "type": "function", "function": function}
        message = {"role": "assistant", "content": said["text"], "tool_calls": [call]}
        choice: Json = {"index": 0, "message": message, "finish_reason": "tool_calls", "stop_reason": None}
        if ids:
            choice |= {"logprobs": {"content": _chat_logprobs(said)}, "token_ids": said["token_ids"]}
        head = {"id": f"chatcmpl-{turn:032x}", "object": "chat.completion", "created": 1750000000, "model": "m"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = orjson.dumps({**head, "choices": [choice], "usage": usage})
        return body[:-1] + b',"prompt_token_ids":[' + self.prompt(turn) + b"]}" if ids else body


def _joined(ids: list[int]) -> bytes:
    return b",".join(b"%d" % token for token in ids)


def _chat_logprobs(said: Json) -> list[Json]:
    """As vLLM writes them with `return_tokens_as_token_ids`."""
    pairs = zip(said["token_ids"], said["logprobs"], strict=True)
    return [
        {"token": f"token_id:{token}", "logprob": value, "bytes": [116], "top_logprobs": []} for token, value in pairs
    ]


class ConversationEngine:
    """The turn is told by how many answers a request carries; in tokens mode by the number of ids."""

    def __init__(self, script: Json) -> None:
        self._script = script
        self._kept: dict[tuple[int, bool | None], bytes] = {}
        self._conversation = Conversation(script, 512, 128, 64)
        self._calls = 0

    async def shape(self, request: web.Request) -> web.Response:
        self._conversation = Conversation(self._script, **await request.json())
        self._kept.clear()
        return web.json_response({})

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.read()
        turn = body.count(b'"assistant"')
        return self._reply(turn, b'"return_token_ids"' in body)

    async def generate(self, request: web.Request) -> web.Response:
        await request.read()
        self._calls += 1
        return self._reply(self._calls % len(self._conversation.answers), None)

    def _reply(self, turn: int, ids: bool | None) -> web.Response:
        if (turn, ids) not in self._kept:
            kind = self._conversation
            self._kept[turn, ids] = kind.generated(turn) if ids is None else kind.completion(turn, ids=ids)
        return web.Response(body=self._kept[turn, ids], content_type="application/json")


async def health(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok", "model_path": "m", "data": [{"id": "m", "object": "model"}]})


async def main() -> None:
    engine = ConversationEngine(json.loads(await asyncio.to_thread(Path(sys.argv[1]).read_text)))
    logging.getLogger("aiohttp.server").disabled = True  # a router tries HTTP/2 first
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/shape", engine.shape)
    app.router.add_post("/inference/v1/generate", engine.generate)
    app.router.add_post("/v1/chat/completions", engine.chat)
    for path in ("/health", "/v1/models", "/get_model_info", "/model_info", "/get_server_info", "/server_info"):
        app.router.add_get(path, health)
    await listen(app)


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
