# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The floor: a proxy that asks for token ids and appends request and reply to a file, and nothing else.

`python benchmarks/recording_proxy.py ENGINE_URL FILE [PORT]` prints its URL. It does not sync, match, or check.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import aiohttp
import orjson
from aiohttp import web


async def main(engine: str, log: Path, port: int) -> None:
    session = aiohttp.ClientSession()
    file = await asyncio.to_thread(log.open, "ab", 0)

    async def chat(request: web.Request) -> web.Response:
        body = orjson.loads(await request.read()) | {"logprobs": True, "return_token_ids": True}
        headers = {"x-prompt-tokens": request.headers.get("x-prompt-tokens", "512")}
        async with session.post(engine + "/v1/chat/completions", data=orjson.dumps(body), headers=headers) as reply:
            answer = orjson.loads(await reply.read())
        file.write(orjson.dumps({"request": body, "reply": answer}, option=orjson.OPT_APPEND_NEWLINE))
        answer.pop("prompt_token_ids")
        for choice in answer["choices"]:
            choice.pop("token_ids")
            choice.pop("logprobs")
        return web.Response(body=orjson.dumps(answer), content_type="application/json")

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0))
