# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine of so many places that takes its time: each answer as long as a draw from a long-tailed distribution.

`python benchmarks/slow_engine.py TOKENIZER_DIRECTORY PLACES MEDIAN SIGMA SCALE` prints its URL. `/busy` tells how many
seconds its places have been taken, all together; who finds none free waits.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from pathlib import Path

from aiohttp import web
from listening import engine, listen
from stage_costs import Tail
from tokenizers import Tokenizer

SAY = "<tool_call>\n<function=bash>\n<parameter=command>\nmake test\n</parameter>\n</function>\n</tool_call><|im_end|>"


class Engine:
    def __init__(self, tokenizer: Tokenizer, places: int, tail: Tail, scale: float) -> None:
        self._ids = tokenizer.encode(SAY, add_special_tokens=False).ids
        self._places = asyncio.Semaphore(places)
        self._tail, self._scale = tail, scale
        self._random = random.Random(1)
        self._busy = 0.0
        self._began: set[float] = set()

    async def generate(self, request: web.Request) -> web.Response:
        await request.read()
        async with self._places:
            began = time.monotonic()
            self._began.add(began)
            try:
                await asyncio.sleep(self._tail.draw(self._random, self._scale))
            finally:
                self._began.discard(began)
                self._busy += time.monotonic() - began
        return web.json_response(self._reply())

    async def busy(self, _: web.Request) -> web.Response:
        now = time.monotonic()
        return web.json_response(self._busy + sum(now - began for began in self._began))

    def _reply(self) -> dict[str, object]:
        content = [{"token_id": token, "logprob": -0.5} for token in self._ids]
        spans = [{"version": "0", "start": 0, "end": len(self._ids)}]
        choice = {"index": 0, "token_ids": self._ids, "logprobs": {"content": content}, "finish_reason": "stop"}
        return {"choices": [{**choice, "weight_versions": spans}]}


async def main() -> None:
    directory, places, median, sigma, scale = sys.argv[1:]
    tokenizer = Tokenizer.from_file(str(Path(directory) / "tokenizer.json"))
    slow = Engine(tokenizer, int(places), Tail(float(median), float(sigma)), float(scale))
    app = engine(slow.generate)
    app.router.add_get("/busy", slow.busy)
    await listen(app)


if __name__ == "__main__":
    asyncio.run(main())
