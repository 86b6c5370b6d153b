# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from transformers import Qwen3ForCausalLM

from tests.support.events import stream
from tests.support.policies import TOLERANCE, random_tokens, reference

PATH = "/inference/v1/generate"


def ask(client: httpx.Client, prompt: list[int], **sampling: Any) -> dict[str, Any]:
    body = {"model": "tiny", "token_ids": prompt, "sampling_params": {"logprobs": 0, "max_tokens": 20} | sampling}
    reply = client.post(PATH, json=body)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def error_of(model: Qwen3ForCausalLM, prompt: list[int], choice: dict[str, Any]) -> float:
    ids = choice["token_ids"]
    expected = reference(model, prompt + ids)
    found = [entry["logprob"] for entry in choice["logprobs"]["content"]]
    return max(abs(value - float(expected[len(prompt) - 1 + n, ids[n]])) for n, value in enumerate(found))


def test_the_shape_of_an_answer(client: httpx.Client, model: Qwen3ForCausalLM) -> None:
    prompt = random_tokens(30)
    answer = ask(client, prompt, seed=1, ignore_eos=True)
    choice = answer["choices"][0]
    assert len(choice["token_ids"]) == 20
    assert [entry["token_id"] for entry in choice["logprobs"]["content"]] == choice["token_ids"]
    assert choice["finish_reason"] == "length"
    assert choice["weight_versions"] == [{"version": "0", "start": 0, "end": 20}]
    assert answer["usage"] == {
        "prompt_tokens": 30,
        "completion_tokens": 20,
        "total_tokens": 50,
        "prompt_tokens_details": None,
    }
    assert "prompt_token_ids" not in answer
    assert error_of(model, prompt, choice) < TOLERANCE


def test_many_clients_at_once_get_exact_answers(client: httpx.Client, model: Qwen3ForCausalLM) -> None:
    """Token truth: eight concurrent calls, prompts from one token to many windows."""
    prompts = [random_tokens(length, seed=length) for length in (1, 5, 24, 25, 100, 400, 1000, 1900)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda prompt: ask(client, prompt, max_tokens=60), prompts))
    for prompt, answer in zip(prompts, answers, strict=True):
        assert error_of(model, prompt, answer["choices"][0]) < TOLERANCE


def test_events_carry_the_same_tokens(client: httpx.Client) -> None:
    body = {
        "token_ids": random_tokens(30),
        "sampling_params": {"max_tokens": 50, "seed": 3, "logprobs": 1, "n": 2, "ignore_eos": True},
        "output_mode": "text",
    }
    whole = client.post(PATH, json=body).json()
    events = stream(client, PATH, body)
    for index, choice in enumerate(whole["choices"]):
        parts = [part for event in events for part in event["choices"] if part["index"] == index]
        assert [token for part in parts for token in part["token_ids"]] == choice["token_ids"]
        logprobs = [entry["logprob"] for part in parts for entry in part["logprobs"]["content"]]
        assert logprobs == pytest.approx([entry["logprob"] for entry in choice["logprobs"]["content"]], abs=1e-5)
        assert [part["finish_reason"] for part in parts][-1] == "length"
        assert parts[-1]["text"] == choice["text"]
        assert parts[-1]["weight_versions"] == choice["weight_versions"]
    assert events[-1]["usage"] == whole["usage"]


def test_a_seed_repeats_an_answer_and_n_differ(client: httpx.Client) -> None:
    first, second = (ask(client, [1, 2, 3], seed=5, n=3) for _ in range(2))
    ids = [choice["token_ids"] for choice in first["choices"]]
    assert ids == [choice["token_ids"] for choice in second["choices"]]
    assert len({tuple(one) for one in ids}) == 3


def test_what_is_asked_for_comes_back(client: httpx.Client) -> None:
    body = {
        "token_ids": [5, 6, 7],
        "request_id": "mine",
        "return_token_ids": True,
        "sampling_params": {"max_tokens": 2, "logprobs": 3, "prompt_logprobs": 1},
    }
    answer = client.post(PATH, json=body).json()
    assert answer["request_id"] == "mine"
    assert answer["prompt_token_ids"] == [5, 6, 7]
    assert [entry and next(iter(entry)) for entry in answer["prompt_logprobs"]] == [None, "6", "7"]
    entry = answer["choices"][0]["logprobs"]["content"][0]
    assert len(entry["top_logprobs"]) == 3
    assert entry["rank"] >= 1
    body["sampling_params"] = {"max_tokens": 2}
    assert client.post(PATH, json=body).json()["choices"][0]["logprobs"] is None


def test_without_a_bound_an_answer_may_fill_the_context(client: httpx.Client) -> None:
    answer = client.post(PATH, json={"token_ids": random_tokens(1990), "sampling_params": {"ignore_eos": True}}).json()
    assert answer["usage"]["total_tokens"] == 2000
