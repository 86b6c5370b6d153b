# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""SGLang's API over the wire: its own parameters, its triples, and ids in the several places of its chat replies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from nemo_gym_polar.chat import Conversation, Message, Sampling, Text
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError
from nemo_gym_polar.engines.replicas import Replicas, Reply
from nemo_gym_polar.engines.sglang import SGLang
from nemo_gym_polar.tokens import VersionSpan
from tests.support.fake_sglang import FakeSGLang

CONTEXT = np.arange(300, 320, dtype=np.int32)
HELLO = Conversation((Message("user", (Text("Hello."),)),))


@pytest.fixture
async def server(model_directory: Path) -> AsyncIterator[FakeSGLang]:
    async with FakeSGLang(model_directory, version="step-7") as server:
        yield server


@pytest.fixture
async def client(server: FakeSGLang) -> AsyncIterator[SGLang]:
    client = SGLang(Replicas([server.url]), model="tiny", stop_token_ids=(5,))
    yield client
    await client.close()


async def test_tokens_versions_and_cache_come_back_exactly(server: FakeSGLang, client: SGLang) -> None:
    await client.check()
    sampled = await client.sample(CONTEXT, Sampling(temperature=1.0, seed=3, stop=("x",), max_tokens=64), session="s")
    (served,) = server.served
    assert served.context == CONTEXT.tolist()
    asked = {name: served.parameters[name] for name in ("stop_token_ids", "stop", "sampling_seed", "max_new_tokens")}
    assert asked == {"stop_token_ids": [5], "stop": ["x"], "sampling_seed": 3, "max_new_tokens": 64}
    neutral = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    assert {name: served.parameters[name] for name in neutral} == neutral
    assert sampled.token_ids.tolist() == served.sampled
    assert np.array_equal(sampled.logprobs, np.array(served.logprobs, np.float32))
    assert sampled.versions == (VersionSpan("step-7", 0, len(served.sampled)),)
    assert (sampled.cached, sampled.stop) == (10, None)


async def test_no_limit_is_no_limit(server: FakeSGLang, client: SGLang) -> None:
    """Left out, it would be 128 tokens."""
    server.script = lambda _: "word " * 300
    sampled = await client.sample(CONTEXT, Sampling(temperature=1.0), session="s")
    assert (len(sampled.token_ids) > 128, sampled.finish_reason) == (True, "stop")


@pytest.mark.parametrize("sglext", [False, True])
async def test_chat_tells_its_ids_in_the_old_and_the_new_place(
    server: FakeSGLang, client: SGLang, sglext: bool
) -> None:
    server.sglext = sglext
    rendered = await client.chat(HELLO, Sampling(temperature=1.0, max_tokens=64), session="s")
    (served,) = server.served
    assert rendered.prompt_ids.tolist() == served.context
    assert rendered.sampled.token_ids.tolist() == served.sampled
    assert rendered.sampled.versions == (VersionSpan("step-7", 0, len(served.sampled)),)
    assert rendered.sampled.cached == len(served.context) // 2
    assert rendered.message.text == "Done."
    assert await client.count(HELLO, session="s") == len(served.context)


async def test_a_server_too_old_for_chat_ids_is_sent_to_tokens_mode(server: FakeSGLang, client: SGLang) -> None:
    server.chat_ids = False
    with pytest.raises(EngineError, match=r"no prompt_token_ids.*engine\.mode=tokens") as caught:
        await client.chat(HELLO, Sampling(temperature=1.0), session="s")
    assert caught.value.fault == "no_ids"


GOOD: dict[str, Any] = {
    "text": "?",
    "meta_info": {
        "finish_reason": {"type": "stop", "matched": "END"},
        "output_token_logprobs": [[-0.5, 1, None], [-1.0, 2, "x"]],
        "completion_tokens": 2,
        "prompt_tokens": 20,
    },
}


class Canned(Replicas):
    """One reply to everything."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(["http://127.0.0.1:9"])
        self._reply = Reply(status, orjson.dumps(body), None)

    async def post(self, path: str, body: bytes, *, session: str) -> Reply:
        return self._reply


async def sample(body: Any, status: int = 200) -> Any:
    client = SGLang(Canned(status, body), model="tiny")
    return await client.sample(CONTEXT, Sampling(temperature=1.0, max_tokens=8), session="s")


async def test_a_stop_sequence_is_told() -> None:
    sampled = await sample(GOOD)
    assert (sampled.stop, sampled.versions, sampled.cached) == ("END", (), None)
    assert sampled.token_ids.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"output_token_logprobs": None}, "no_logprobs"),
        ({"output_token_logprobs": []}, "no_ids"),
        ({"output_token_logprobs": [1, 2]}, "malformed"),
        ({"output_token_logprobs": {"a": 1}}, "malformed"),
        ({"output_token_logprobs": [[-1.0, "a"], [-1.0, 2]]}, "malformed"),
        ({"output_token_logprobs": [["a", 1], [-1.0, 2]]}, "malformed"),
        ({"output_token_logprobs": [[-1e400, 1], [-1.0, 2]]}, "not_finite"),
        ({"completion_tokens": 3}, "misaligned"),
        ({"prompt_tokens": 21}, "misaligned"),
        ({"finish_reason": None}, "aborted"),
        ({"finish_reason": {"type": "abort", "message": "weights"}}, "aborted"),
    ],
)
async def test_what_is_wrong_with_a_reply_is_named(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(EngineError) as caught:
        await sample({**GOOD, "meta_info": {**GOOD["meta_info"], **change}})
    assert caught.value.fault == fault


@pytest.mark.parametrize(
    ("body", "fault"),
    [([], "malformed"), ({"text": "only"}, "no_ids"), ({**GOOD, "output_ids": [1]}, "misaligned")],
)
async def test_a_reply_without_its_tokens_is_no_answer(body: Any, fault: str) -> None:
    with pytest.raises(EngineError) as caught:
        await sample(body)
    assert caught.value.fault == fault


async def test_its_words_for_a_context_that_is_too_long() -> None:
    said = "The input (9 tokens) is longer than the model's context length (8 tokens)."
    with pytest.raises(ContextOverflowError, match="longer than"):
        await sample({"error": {"message": said}}, 400)


async def test_another_server_s_404_asks_for_the_kind() -> None:
    with pytest.raises(EngineError, match=r"engine\.kind is 'sglang'"):
        await sample({"detail": "Not Found"}, 404)
