# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Agents' conversations over Chat Completions: the driver's side of a benchmark."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import numpy as np
import orjson
from corpus import Corpus
from gateways import Endpoint, FailedError
from servers import Bench, Server

from nemo_gym_polar.engines.template import ChatTemplate

Json = dict[str, Any]
SYSTEM = "You are an expert coding assistant."
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
BASH = {"name": "bash", "description": "Execute a bash command in the working directory.", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": BASH}]
CALL = "<tool_call>\n<function=bash>\n<parameter=command>\n{}\n</parameter>\n</function>\n</tool_call><|im_end|>"


def script(corpus: Corpus, sizes: tuple[int, ...], different: int = 16) -> Json:
    """What the engine says: for each size in tokens, `different` answers of a text and a call of bash."""
    random = np.random.default_rng(0)
    answers = {str(size): [_answer(corpus, random, size) for _ in range(different)] for size in sizes}
    return {"answers": answers, "stream": [int(token) for token in corpus.ids]}


def _answer(corpus: Corpus, random: np.random.Generator, size: int) -> Json:
    command = corpus.passage(int(random.integers(10**6)), 40)[1].strip()
    call = corpus.tokenizer.encode(CALL.format(command), add_special_tokens=False).ids
    said, text = corpus.passage(int(random.integers(10**6)), size - len(call))
    logprobs = (-random.gamma(0.3, size=size)).astype(np.float32).astype(float).tolist()
    arguments = json.dumps({"command": command})
    return {"token_ids": said + call, "text": text, "name": "bash", "arguments": arguments, "logprobs": logprobs}


class Texts:
    """Prompts and observations of given numbers of tokens, each different."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._starts = itertools.count(1000, 7919)
        rendered = ChatTemplate.load(corpus.directory).render(
            self._messages(""), tools=TOOLS, add_generation_prompt=True, enable_thinking=False
        )
        self._frame = len(corpus.tokenizer.encode(rendered, add_special_tokens=False).ids)

    def of(self, tokens: int) -> str:
        return self._corpus.passage(next(self._starts), max(1, tokens))[1]

    def opening(self, tokens: int) -> list[Json]:
        """The first messages of a conversation whose prompt has about this many tokens."""
        return self._messages(self.of(tokens - self._frame))

    @staticmethod
    def _messages(text: str) -> list[Json]:
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]


@dataclass
class Talk:
    """One session. Each `turn` is a call; the history grows by its answer and an observation."""

    bench: Bench
    server: Server
    session: str
    endpoint: Endpoint
    history: list[Json] = field(default_factory=list)

    async def turn(self) -> float:
        """Seconds of waiting."""
        request = {"model": "m", "messages": self.history, "tools": TOOLS, **self.server.gateway.fields}
        body = orjson.dumps(request)
        headers = {"content-type": "application/json", **self.endpoint.headers}
        started = time.perf_counter()
        status, answer = await self._post(body, headers)
        waited = time.perf_counter() - started
        if status != 200:
            raise FailedError(f"{self.server.gateway.name} answered {status}: {answer[:800]!r}")
        said = orjson.loads(answer)["choices"][0]["message"]
        call = {key: said["tool_calls"][0][key] for key in ("id", "type", "function")}
        self.history.append({"role": "assistant", "content": said["content"], "tool_calls": [call]})
        return waited

    async def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            url = self.endpoint.base_url + "/chat/completions"
            async with self.bench.client.post(url, data=body, headers=headers) as reply:
                return reply.status, await reply.read()
        except aiohttp.ClientError as error:
            raise FailedError(f"{self.server.gateway.name} broke a call off: {error!r}") from error

    def observe(self, text: str) -> None:
        call = self.history[-1]["tool_calls"][0]
        self.history.append({"role": "tool", "tool_call_id": call["id"], "content": text})

    async def close(self) -> None:
        await self.server.gateway.close(self.bench.client, self.server.place, self.session)


_numbers = itertools.count(1)


async def talk(bench: Bench, server: Server, opening: list[Json]) -> Talk:
    session = f"s{next(_numbers)}"
    endpoint = await server.gateway.open(bench.client, server.place, session)
    return Talk(bench, server, session, endpoint, opening)
