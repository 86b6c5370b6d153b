# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Traces become items that an independent reading of NeMo RL's contract turns back into the very same tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.chat import Message, Reasoning, Text, ToolCall, ToolResult
from nemo_gym_polar.environment.responses import Call, TraceError, output_items, response
from nemo_gym_polar.forest.trace import Trace
from tests.environment.reference_walk import BrokenContractError, Row, walk

ANSWERS = (
    Message("assistant", (Text("done"),)),
    Message("assistant", (Reasoning("hm"), Text("so"), ToolCall("c1", "bash", "{}"))),
    Message("assistant", (ToolCall("c2", "bash", '{"a": 1}'), ToolCall("c3", "read", "not json"))),
    Message("assistant", (Reasoning("only thoughts"),)),
    Message("assistant", ()),
)
RESULTS = (Message("tool", (ToolResult("c1", (Text("out"), Text("put"))),)), Message("user", (Text("go on"),)))

# One call: new context tokens, sampled tokens, whether they are trained on, the answer, whether a result came first.
steps = st.tuples(st.integers(0, 4), st.integers(0, 5), st.booleans(), st.sampled_from(ANSWERS), st.booleans())


@st.composite
def chains(draw: st.DrawFn) -> tuple[Trace, list[Call]]:
    mask: list[bool] = [False] * draw(st.integers(1, 3))
    calls: list[Call] = []
    for new, sampled, trained, answer, after_result in draw(st.lists(steps, min_size=1, max_size=8)):
        mask += [False] * new
        calls.append(Call(answer, len(mask), len(mask) + sampled, RESULTS if after_result else ()))
        mask += [trained] * sampled
    mask += [False] * draw(st.integers(0, 2))
    return _trace(draw, mask), calls


def _trace(draw: st.DrawFn, mask: list[bool]) -> Trace:
    loss_mask = np.array(mask, dtype=np.bool_)
    seed = np.random.default_rng(draw(st.integers(0, 2**16)))
    logprobs = np.where(loss_mask, -seed.random(len(mask)), 0.0).astype(np.float32)
    tokens = seed.integers(0, 5, len(mask)).astype(np.int32)
    return Trace("s", 0, "main", tokens, loss_mask, logprobs, turns=())


def result(trace: Trace, calls: list[Call]) -> dict[str, Any]:
    body = response(trace, output_items(trace, calls), model="m", created=1.0)
    whole = {"responses_create_params": {"input": "hi"}, "reward": 1.0, "response": body}
    decoded: dict[str, Any] = orjson.loads(orjson.dumps(whole))
    return decoded


@given(chains())
def test_the_walk_gives_back_the_trace(chain: tuple[Trace, list[Call]]) -> None:
    trace, calls = chain
    if not trace.trained_tokens:
        with pytest.raises(TraceError, match="no token with loss mask 1"):
            output_items(trace, calls)
        return
    row = walk(result(trace, calls))
    length = int(np.flatnonzero(trace.loss_mask)[-1]) + 1
    assert row.tokens == trace.token_ids[:length].tolist()
    assert row.mask == trace.loss_mask[:length].tolist()
    assert np.array_equal(np.array(row.logprobs, dtype=np.float32), trace.logprobs[:length])
    assert row.turns == int((np.diff(trace.loss_mask.astype(int), prepend=0) == 1).sum())


@given(chains())
def test_nemo_gym_reads_the_response(chain: tuple[Trace, list[Call]]) -> None:
    openai_utils = pytest.importorskip("nemo_gym.openai_utils")
    trace, calls = chain
    if trace.trained_tokens:
        body = result(trace, calls)["response"]
        read = openai_utils.NeMoGymResponse.model_validate(body)
        kept = [item.generation_token_ids for item in read.output if hasattr(item, "generation_token_ids")]
        assert kept == [item["generation_token_ids"] for item in body["output"] if "generation_token_ids" in item]
        assert read.usage.total_tokens == len(trace)


def simple(mask: list[int], *calls: Call, logprobs: list[float] | None = None) -> tuple[Trace, list[Call]]:
    values = logprobs if logprobs is not None else [-0.5 if bit else 0.0 for bit in mask]
    arrays = np.arange(len(mask), dtype=np.int32), np.array(mask, dtype=np.bool_), np.array(values, dtype=np.float32)
    return Trace("s", 3, "main", *arrays, turns=()), list(calls)


def test_calls_with_nothing_between_share_an_item() -> None:
    first, second = Call(ANSWERS[0], 1, 3), Call(ANSWERS[0], 3, 5)
    items = output_items(*simple([0, 1, 1, 1, 1, 0], first, second))
    assert [item.get("generation_token_ids") for item in items] == [None, [1, 2, 3, 4]]
    assert items[1]["prompt_token_ids"] == [0]


def test_the_tokens_stand_on_the_last_item_of_a_call() -> None:
    items = output_items(*simple([0, 1, 1], Call(ANSWERS[1], 1, 3, RESULTS)))
    assert [item["type"] for item in items] == ["function_call_output", "reasoning", "message", "function_call"]
    assert [("generation_token_ids" in item) for item in items] == [False, False, False, True]
    assert items[0]["output"] == "output"
    assert len({item["id"] for item in items}) == len(items)


def test_context_only_calls_have_no_tokens() -> None:
    items = output_items(*simple([0, 0, 0, 0, 1], Call(ANSWERS[0], 1, 3), Call(ANSWERS[0], 4, 5)))
    assert [item.get("prompt_token_ids") for item in items] == [None, [0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (simple([1, 1], Call(ANSWERS[0], 0, 2)), "its prompt is empty"),
        (simple([0, 1], Call(ANSWERS[0], 1, 2), logprobs=[0.0, float("nan")]), "not finite"),
        (simple([0, 1], Call(ANSWERS[0], 1, 2), logprobs=[0.0, float("-inf")]), "not finite"),
        (simple([0, 1], Call(ANSWERS[0], 1, 2), logprobs=[0.0]), "differ in length"),
        (simple([0, 1, 1], Call(ANSWERS[0], 1, 2)), "token 2 has loss mask 1"),
        (simple([0, 1, 0], Call(ANSWERS[0], 1, 3)), "only a part of it is trained"),
        (simple([0, 0]), "no token with loss mask 1"),
    ],
)
def test_a_trace_that_would_be_mistrained_is_refused(chain: tuple[Trace, list[Call]], message: str) -> None:
    with pytest.raises(TraceError, match=message) as error:
        output_items(*chain)
    assert "trace 3 of session s" in str(error.value)


def damaged(**fields: Any) -> dict[str, Any]:
    whole = result(*simple([0, 1, 0, 1], Call(ANSWERS[0], 1, 2), Call(ANSWERS[0], 3, 4)))
    whole["response"]["output"][1].update(fields)
    return whole


@pytest.mark.parametrize(
    ("whole", "message"),
    [
        (damaged(prompt_token_ids=[0, 9, 2]), "Non-contiguous"),
        (damaged(prompt_token_ids=[0, 1]), "nothing stands between"),
        (damaged(generation_log_probs=[]), "0 logprobs"),
        (damaged(generation_log_probs=[float("nan")]), "not finite"),
    ],
)
def test_the_reference_walk_sees_each_breach(whole: dict[str, Any], message: str) -> None:
    with pytest.raises(BrokenContractError, match=message):
        walk(whole)


def test_the_group_key_is_the_first_prompt() -> None:
    chain = simple([0, 0, 1, 0, 1], Call(ANSWERS[0], 2, 3), Call(ANSWERS[0], 4, 5))
    row: Row = walk(result(*chain))
    assert row.first_prompt == (0, 1)
    other = replace(chain[0], session_id="t")
    assert walk(result(other, chain[1])).first_prompt == row.first_prompt
