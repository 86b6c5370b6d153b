# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A stock vLLM that renders and parses while its contexts stay exact: render, generate from ids, derender.

For models that `renderers` doesn't know. The server's own template and parsers are used, yet a continuation keeps the
tokens that were read and sampled: of the conversation as the server renders it, only what comes after the answer is
taken. That is done only where the server renders the beginning of the whole as it renders the beginning alone; a
template that rewrites what came before (drops thinking, moves tools) gives a new chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nemo_gym_polar.chat import Conversation, Message, Sampling
from nemo_gym_polar.engines import openai_wire, replies, vllm_replies
from nemo_gym_polar.engines.base import EngineError, Rendered, Sampled
from nemo_gym_polar.engines.chat_server import CHAT_PATH
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.engines.vllm import GENERATE, NO_IDS, VLLM
from nemo_gym_polar.tokens import Int32

_RENDER = f"{CHAT_PATH}/render"
_DERENDER = f"{CHAT_PATH}/derender"
_CLOSING = 4  # tokens that a template may write after the token that ends an answer; usually one, a line break
_NEEDED = "engine.mode=render needs a vLLM that was started with --enable-scale-out"


class RenderingVLLM(VLLM):
    """Chat mode with exact continuation, at the price of up to three short calls more per turn."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._ends: set[int] = set()  # the tokens that have ended an answer so far

    async def chat(
        self, conversation: Conversation, sampling: Sampling, *, session: str, prefix: Int32 | None = None
    ) -> Rendered:
        asked = {**self._asked(conversation), **openai_wire.parameters(sampling), "logprobs": True}
        request = await self._ask(_RENDER, asked, session)
        whole = _ids(request)
        context = whole
        if prefix is not None and not request.get("features"):  # those of images name places in `whole`
            context = await self._continued(conversation, whole, prefix, session)
        answer = await self._ask(GENERATE, {**request, "token_ids": context}, session)
        source = _source(GENERATE)
        sampled = vllm_replies.generated(replies.first_choice(answer, source), source)
        self._learn_end(sampled)
        shown = {"model": self.model, "generate_response": answer, "chat_request": asked}
        return Rendered(context, sampled, _message(await self._ask(_DERENDER, shown, session)))

    async def _continued(self, conversation: Conversation, whole: Int32, prefix: Int32, session: str) -> Int32:
        """`prefix` and what `whole` has after the answer that ends `prefix`; or `whole`, where that isn't certain."""
        known = Conversation(_up_to_answer(conversation), conversation.tools)
        asked = {**self._asked(known), "add_generation_prompt": False}
        rendered = _ids(await self._ask(_RENDER, asked, session))
        added = continuation(whole, rendered, prefix, self._ends)
        return whole if added is None else np.concatenate((prefix, added))

    def _learn_end(self, sampled: Sampled) -> None:
        if sampled.finish_reason == "stop" and sampled.stop is None:
            self._ends.add(int(sampled.token_ids[-1]))

    def _asked(self, conversation: Conversation) -> dict[str, Any]:
        return {"model": self.model, **openai_wire.asked(conversation)}

    async def _ask(self, path: str, body: dict[str, Any], session: str) -> dict[str, Any]:
        reply = await self._replicas.post(path, openai_wire.encode(body), session=session)
        if reply.status == 403:
            raise EngineError(f"The engine answered {path} with 403: {_NEEDED}.")
        return replies.decoded(reply, _source(path))


def continuation(whole: Int32, rendered: Int32, prefix: Int32, ends: set[int]) -> Int32 | None:
    """What `whole` adds to `prefix`, None where that can't be proven.

    `rendered` is the beginning of the conversation up to its last answer, `whole` all of it, both as the template
    writes them; `prefix` is what was read and sampled in place of `rendered`. `ends` are the tokens that end answers.
    The three meet at the token that ends the answer: an answer that was cut off gets it now.
    """
    if not np.array_equal(whole[: len(rendered)], rendered):
        return None
    last = int(prefix[-1])
    found = np.flatnonzero(np.isin(rendered, [last] if last in ends else list(ends)))
    if not len(found) or len(rendered) - int(found[-1]) > _CLOSING + 1:
        return None
    return whole[int(found[-1]) + (last in ends) :]


def _up_to_answer(conversation: Conversation) -> tuple[Message, ...]:
    messages = conversation.messages
    after = next(index for index in range(len(messages), 0, -1) if messages[index - 1].role == "assistant")
    return messages[:after]


def _message(answer: dict[str, Any]) -> Message:
    source = _source(_DERENDER)
    choice = replies.first_choice(answer, source)
    try:
        return openai_wire.answered(choice)
    except (AttributeError, LookupError, TypeError) as error:
        raise replies.malformed(source, f"its message is {choice.get('message')!r:.80}") from error


def _ids(request: dict[str, Any]) -> Int32:
    source = _source(_RENDER)
    if not request.get("token_ids"):
        raise replies.missing_ids(source, "token_ids")
    return replies.int32(request["token_ids"], source)


def _source(path: str) -> Source:
    return Source(VLLM.KIND, path, NO_IDS)
