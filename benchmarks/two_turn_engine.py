# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""An engine that costs almost nothing: one shell command, and then the end.

`python benchmarks/two_turn_engine.py TOKENIZER_DIRECTORY` prints its URL.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from aiohttp import web
from listening import engine, listen
from tokenizers import Tokenizer

CALL = "<tool_call>\n<function=bash>\n<parameter=command>\necho hi > hello.txt\n</parameter>\n</function>\n</tool_call>"
END = "<|im_end|>"


class TwoTurns:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.answered = tokenizer.token_to_id("<tool_response>")
        self.call = reply(tokenizer.encode(CALL + END, add_special_tokens=False).ids)
        self.done = reply(tokenizer.encode("Done." + END, add_special_tokens=False).ids)

    async def generate(self, request: web.Request) -> web.Response:
        body = await request.json()
        said = self.done if self.answered in body["token_ids"] else self.call
        return web.Response(body=said, content_type="application/json")


def reply(ids: list[int]) -> bytes:
    content = [{"token_id": token, "logprob": -0.5} for token in ids]
    spans = [{"version": "0", "start": 0, "end": len(ids)}]
    choice = {"index": 0, "token_ids": ids, "logprobs": {"content": content}, "finish_reason": "stop"}
    return json.dumps({"choices": [{**choice, "weight_versions": spans}]}).encode()


async def main() -> None:
    path = str(Path(sys.argv[1]) / "tokenizer.json")
    await listen(engine(TwoTurns(Tokenizer.from_file(path)).generate))


if __name__ == "__main__":
    asyncio.run(main())
