# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine that costs almost nothing: it gives the same 128 tokens for any prompt, already encoded.

`python benchmarks/canned_engine.py ANSWER_JSON` prints its URL. The file holds `token_ids`, `text` and the name,
arguments and id of a tool call.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from aiohttp import web
from listening import engine, listen


class CannedEngine:
    """Chat replies carry as many prompt ids as the request's header `x-prompt-tokens` says, where ids are asked for."""

    def __init__(self, answer: dict[str, Any]) -> None:
        ids = answer["token_ids"]
        logprobs = [-0.001 * (1 + i % 700) for i in range(len(ids))]
        content = [{"token_id": token, "logprob": value} for token, value in zip(ids, logprobs, strict=True)]
        spans = [{"version": "1", "start": 0, "end": len(ids)}]
        choice = {"index": 0, "token_ids": ids, "logprobs": {"content": content}, "finish_reason": "stop"}
        self.generated = json.dumps({"choices": [{**choice, "weight_versions": spans}]}).encode()
        call = {"id": answer["id"], "type": "function"}
        function = {"name": answer["name"], "arguments": answer["arguments"]}
        message = {"role": "assistant", "content": answer["text"], "tool_calls": [{**call, "function": function}]}
        self.plain = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode()
        self.recorded = json.dumps({"choices": [{**choice, "message": message}]}).encode()

    async def generate(self, request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=self.generated, content_type="application/json")

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.read()
        if b'"return_token_ids":true' not in body:
            return web.Response(body=self.plain, content_type="application/json")
        ids = b",".join([b"1234"] * int(request.headers.get("x-prompt-tokens", "512")))
        reply = b'{"prompt_token_ids":[' + ids + b"]," + self.recorded[1:]
        return web.Response(body=reply, content_type="application/json")


async def main() -> None:
    canned = CannedEngine(json.loads(await asyncio.to_thread(Path(sys.argv[1]).read_text)))
    app = engine(canned.generate)
    app.router.add_post("/v1/chat/completions", canned.chat)
    await listen(app)


if __name__ == "__main__":
    asyncio.run(main())
