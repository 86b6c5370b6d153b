# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Ids wherever a server puts them; what is said twice must agree; whatever comes, an answer or an `EngineError`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_gym_polar.engines import chat_replies
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.engines.replies import Source, first_choice

SOURCE = Source("openai", "/x", "the reason")
PROMPT, IDS, LOGPROBS = [1, 2, 3], [7, 8], [-0.5, -1.0]


def content(*tokens: str) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": one} for token, one in zip(tokens, LOGPROBS, strict=True)]}


def reply(choice: dict[str, Any], **top: Any) -> dict[str, Any]:
    return {"choices": [{"finish_reason": "stop", "message": {"content": "x"}, **choice}], **top}


PLAIN = content("a", "b")
TRIPLES = {"output_token_logprobs": [[-0.5, 7, None], [-1.0, 8, None]]}
IN_MESSAGE = {"prompt_token_ids": PROMPT, "generation_token_ids": IDS, "generation_log_probs": LOGPROBS}
PLACES: dict[str, dict[str, Any]] = {
    "vllm": reply({"token_ids": IDS, "logprobs": PLAIN}, prompt_token_ids=PROMPT),
    "vllm-named": reply({"logprobs": content("token_id:7", "token_id:8")}, prompt_token_ids=PROMPT),
    "sglang": reply({"token_ids": IDS, "prompt_token_ids": PROMPT, "logprobs": PLAIN, "meta_info": TRIPLES}),
    "sglang-plain": reply({"token_ids": IDS, "prompt_token_ids": PROMPT, "logprobs": PLAIN}),
    "sglext": reply({"logprobs": PLAIN}, sglext={"input_ids": PROMPT, "output_ids": [IDS]}),
    "nemo_rl": reply({"message": IN_MESSAGE, "logprobs": content("token_id:7", "token_id:8")}),
    "nemo_rl-bare": reply({"message": IN_MESSAGE}),
}
BY_PLACE = pytest.mark.parametrize("answer", PLACES.values(), ids=PLACES)


def read(answer: dict[str, Any]) -> Any:
    return chat_replies.read(answer, first_choice(answer, SOURCE), SOURCE)


@BY_PLACE
def test_every_place_is_read(answer: dict[str, Any]) -> None:
    prompt, sampled = read(answer)
    assert prompt.tolist() == PROMPT
    assert sampled.token_ids.tolist() == IDS
    assert np.array_equal(sampled.logprobs, np.array(LOGPROBS, np.float32))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every value inside a reply stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in items for found in [(*path, key), *places(inner, (*path, key))]]


def changed(answer: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> dict[str, Any]:
    spoiled = copy.deepcopy(answer)
    holder: Any = spoiled
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return spoiled


JUNK = st.sampled_from([None, [], {}, "x", 5, -3, 1.5, True, [None], [1, "a"], [[1]], 2**40, [[-1.0]], float("inf")])


@given(data=st.data(), name=st.sampled_from(sorted(PLACES)))
def test_nothing_spoils_an_answer_in_silence(data: st.DataObject, name: str) -> None:
    """An answer may lose what it says twice, never say something else: ids and log-probabilities stay, or it fails."""
    answer = PLACES[name]
    path = data.draw(st.sampled_from(places(answer)))
    junk = data.draw(JUNK)
    remove = data.draw(st.booleans())
    spoiled = changed(answer, path, lambda holder, key: holder.pop(key) if remove else holder.__setitem__(key, junk))
    try:
        prompt, sampled = read(spoiled)
    except EngineError:
        return
    assert len(sampled.token_ids) == len(sampled.logprobs) > 0
    if "prompt_token_ids" not in path and "input_ids" not in path:
        assert prompt.tolist() == PROMPT


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        (PLACES["sglang"], ("choices", 0, "token_ids", 0)),
        (PLACES["sglang"], ("choices", 0, "meta_info", "output_token_logprobs", 1, 1)),
        (PLACES["nemo_rl"], ("choices", 0, "message", "generation_token_ids", 1)),
    ],
)
def test_two_accounts_that_differ_are_no_answer(answer: dict[str, Any], path: tuple[Any, ...]) -> None:
    with pytest.raises(EngineError, match="other tokens") as caught:
        read(changed(answer, path, lambda holder, key: holder.__setitem__(key, 99)))
    assert caught.value.fault == "misaligned"


def test_the_reason_is_told() -> None:
    with pytest.raises(EngineError, match="gave no token_ids: the reason"):
        read(reply({"logprobs": PLAIN}, prompt_token_ids=PROMPT))
    with pytest.raises(EngineError, match="gave no prompt_token_ids: the reason"):
        read(reply({"token_ids": IDS, "logprobs": PLAIN}))
