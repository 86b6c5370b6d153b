# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""vLLM's API over the wire: exact tokens, versions, replicas, cancellation, settings."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import orjson
import pytest
from pydantic import ValidationError

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.engines import replies, vllm_replies
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError
from nemo_gym_polar.engines.factory import ChatMode, EngineSettings, TokensMode, make_engine
from nemo_gym_polar.engines.replicas import Replicas, Reply
from nemo_gym_polar.engines.replies import Source
from nemo_gym_polar.engines.vllm import VLLM
from nemo_gym_polar.tokens import VersionSpan
from tests.support.fake_engine import FakeEngine
from tests.support.gateways import engine_settings

CONTEXT = np.arange(300, 320, dtype=np.int32)
SAMPLING = Sampling(temperature=1.0, max_tokens=64)
SOURCE = Source("vllm", "/x", "the reason")


async def test_tokens_versions_and_logprobs_come_back_exactly(engine: FakeEngine) -> None:
    engine.version = "step-7"
    client = VLLM(Replicas([engine.url]), model="tiny", stop_token_ids=(5,))
    sampled = await client.sample(CONTEXT, SAMPLING, session="s")
    await client.close()
    (served,) = engine.served
    assert served.context == CONTEXT.tolist()
    assert served.parameters["stop_token_ids"] == [5]
    assert served.parameters["top_k"] == -1
    assert sampled.token_ids.dtype == np.int32
    assert sampled.logprobs.dtype == np.float32
    assert sampled.token_ids.tolist() == served.sampled
    assert sampled.versions == (VersionSpan("step-7", 0, len(served.sampled)),)


async def test_giving_up_stops_the_engine(engine: FakeEngine) -> None:
    engine.delay = 60
    client = VLLM(Replicas([engine.url]), model="tiny")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.sample(CONTEXT, SAMPLING, session="s"), 0.3)
    await asyncio.sleep(0.2)
    assert (engine.aborted, engine.running) == (1, 0)
    await client.close()


async def test_a_silent_engine_is_given_up(engine: FakeEngine) -> None:
    engine.delay = 60
    client = VLLM(Replicas([engine.url], timeout=0.2), model="tiny")
    with pytest.raises(EngineError, match="No engine answered") as caught:
        await client.sample(CONTEXT, SAMPLING, session="s")
    assert caught.value.status == 503
    await client.close()


async def test_sessions_spread_and_stick(engine: FakeEngine) -> None:
    async with FakeEngine(engine.tokenizer_directory) as second:
        client = VLLM(Replicas([engine.url, second.url + "/v1/"]), model="tiny")
        for _ in range(3):
            for session in ("a", "b", "c", "d"):
                await client.sample(CONTEXT, SAMPLING, session=session)
        assert (len(engine.served), len(second.served)) == (6, 6)
        for session in ("a", "c"):
            client.release(session)
        for session in ("e", "f"):
            await client.sample(CONTEXT, SAMPLING, session=session)
        assert (len(engine.served), len(second.served)) == (8, 6)
        await client.close()


async def test_check_says_which_engine_is_dead(engine: FakeEngine) -> None:
    client = VLLM(Replicas([engine.url]), model="tiny")
    await client.check()
    await client.close()
    dead = VLLM(Replicas(["http://127.0.0.1:9"]), model="tiny")
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9"):
        await dead.check()
    await dead.close()


async def test_one_replica_that_answers_is_enough(engine: FakeEngine) -> None:
    client = VLLM(Replicas(["http://127.0.0.1:9", engine.url]), model="tiny")
    await client.check()
    await client.close()


def reply(body: Any, status: int = 200) -> Reply:
    return Reply(status, orjson.dumps(body), None)


@pytest.mark.parametrize(
    ("status", "said", "kind", "seen"),
    [
        (400, "This model's maximum context length is 10 tokens", ContextOverflowError, 400),
        (
            400,
            "The decoder prompt fills or exceeds max_model_len. No room for output tokens",
            ContextOverflowError,
            400,
        ),
        (422, "field required", EngineError, 400),
        (401, "unauthorized", EngineError, 502),
        (404, "no such model", EngineError, 502),
        (503, "overloaded", EngineError, 503),
    ],
)
def test_statuses(status: int, said: str, kind: type[EngineError], seen: int) -> None:
    with pytest.raises(EngineError, match=said.split(".")[0]) as caught:
        replies.decoded(reply({"error": said}, status), SOURCE)
    assert type(caught.value) is kind
    assert caught.value.status == seen


GOOD: dict[str, Any] = {
    "token_ids": [1, 2],
    "logprobs": {"content": [{"token_id": 1, "logprob": -0.5}, {"token_id": 2, "logprob": -1.0}]},
    "finish_reason": "stop",
    "weight_versions": [{"version": 1, "start": 0, "end": 1}, {"version": 2, "start": 1, "end": 2}],
}


def test_spans_of_several_versions() -> None:
    assert vllm_replies.generated(GOOD, SOURCE).versions == (VersionSpan("1", 0, 1), VersionSpan("2", 1, 2))
    assert vllm_replies.generated({**GOOD, "weight_versions": None}, SOURCE).versions == ()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"token_ids": []}, "no_ids"),
        ({"token_ids": [1, 2**40]}, "malformed"),
        ({"token_ids": ["a", "b"]}, "malformed"),
        ({"token_ids": [1.5, 2]}, "malformed"),
        ({"token_ids": [[1], [2]]}, "malformed"),
        ({"token_ids": [1, 3]}, "misaligned"),
        ({"logprobs": {"content": None}}, "no_logprobs"),
        ({"logprobs": {"content": [1, 2]}}, "no_logprobs"),
        ({"logprobs": {"content": [{"logprob": "x"}, {"logprob": 1}]}}, "malformed"),
        ({"logprobs": {"content": [{"logprob": -1e400}, {"logprob": -1}]}}, "not_finite"),
        ({"finish_reason": None}, "aborted"),
        ({"weight_versions": [{"version": "1"}]}, "malformed"),
        ({"weight_versions": [{"version": "1", "start": 0, "end": 9}]}, "misaligned"),
    ],
)
def test_what_is_wrong_with_a_choice_is_named(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(EngineError) as caught:
        vllm_replies.generated({**GOOD, **change}, SOURCE)
    assert caught.value.fault == fault


@pytest.mark.parametrize("body", [[], {}, {"choices": []}, {"choices": [1]}, {"choices": {}}])
def test_a_reply_without_a_choice_is_malformed(body: Any) -> None:
    with pytest.raises(EngineError) as caught:
        replies.first_choice(replies.decoded(reply(body), SOURCE), SOURCE)
    assert caught.value.fault == "malformed"


def test_the_factory_knows_both_modes(engine: FakeEngine) -> None:
    assert isinstance(make_engine(engine_settings(engine)), TokensMode)
    assert isinstance(make_engine(engine_settings(engine, mode="chat")), ChatMode)


def test_settings_say_what_is_missing() -> None:
    with pytest.raises(ValidationError, match=r"engine\.tokenizer is not set"):
        EngineSettings(urls=("http://x",), model="m")
    with pytest.raises(ValidationError, match="extra"):
        EngineSettings(urls=("http://x",), model="m", mode="chat", tokeniser="x")  # type: ignore[call-arg]  # a typo
    with pytest.raises(ValueError, match=r"engine\.urls is empty"):
        make_engine(EngineSettings(urls=(), model="m", mode="chat"))
