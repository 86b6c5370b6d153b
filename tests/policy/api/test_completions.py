# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import httpx
import pytest
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.api.service import PolicyService
from tests.support.events import stream
from tests.support.policies import TOLERANCE, random_tokens, reference

PATH = "/v1/completions"


def ask(client: httpx.Client, **body: Any) -> dict[str, Any]:
    reply = client.post(PATH, json={"model": "tiny", "seed": 1} | body)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def test_token_prompts_come_back_in_the_choice(client: httpx.Client, model: Qwen3ForCausalLM) -> None:
    prompt = random_tokens(40)
    answer = ask(client, prompt=prompt, logprobs=0, return_token_ids=True, ignore_eos=True)
    choice = answer["choices"][0]
    assert choice["prompt_token_ids"] == prompt
    assert len(choice["token_ids"]) == 16
    expected = reference(model, prompt + choice["token_ids"])
    for place, (token, logprob) in enumerate(
        zip(choice["token_ids"], choice["logprobs"]["token_logprobs"], strict=True)
    ):
        assert logprob == pytest.approx(float(expected[39 + place, token]), abs=TOLERANCE)
    assert answer["usage"]["prompt_tokens"] == 40


def test_a_text_is_encoded_as_it_stands(client: httpx.Client, service: PolicyService) -> None:
    choice = ask(client, prompt="<|im_start|>user\nhé", return_token_ids=True)["choices"][0]
    assert choice["prompt_token_ids"] == service.tokenizer.encode("<|im_start|>user\nhé")


def test_several_prompts_and_several_answers(client: httpx.Client) -> None:
    answer = ask(client, prompt=[[1, 2], [3]], n=2, max_tokens=3, return_token_ids=True)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert [choice["prompt_token_ids"] for choice in answer["choices"]] == [[1, 2], [1, 2], [3], [3]]
    assert answer["usage"]["prompt_tokens"] == 3


def test_echo_scores_the_prompt(client: httpx.Client, model: Qwen3ForCausalLM, service: PolicyService) -> None:
    prompt = random_tokens(60, seed=2)
    choice = ask(client, prompt=prompt, echo=True, max_tokens=0, logprobs=1)["choices"][0]
    expected = reference(model, prompt)
    assert choice["text"] == service.tokenizer.decode(prompt, skip_special_tokens=True)
    assert choice["logprobs"]["token_logprobs"][0] is None
    for place, logprob in enumerate(choice["logprobs"]["token_logprobs"][1:]):
        assert logprob == pytest.approx(float(expected[place, prompt[place + 1]]), abs=TOLERANCE)
    assert len(choice["logprobs"]["tokens"]) == 60
    assert choice["finish_reason"] == "length"


def test_prompt_logprobs_by_token_id(client: httpx.Client, model: Qwen3ForCausalLM) -> None:
    prompt = random_tokens(30, seed=3)
    scored = ask(client, prompt=prompt, prompt_logprobs=0, max_tokens=1)["choices"][0]["prompt_logprobs"]
    expected = reference(model, prompt)
    assert scored[0] is None
    for place, entry in enumerate(scored[1:]):
        token = prompt[place + 1]
        assert entry[str(token)]["logprob"] == pytest.approx(float(expected[place, token]), abs=TOLERANCE)


def test_events_join_to_the_whole(client: httpx.Client) -> None:
    body: dict[str, Any] = {
        "prompt": [1, 2, 3],
        "max_tokens": 60,
        "seed": 4,
        "logprobs": 0,
        "return_token_ids": True,
        "n": 2,
        "ignore_eos": True,
    }
    whole = client.post(PATH, json=body).json()
    events = stream(client, PATH, body | {"stream_options": {"include_usage": True}})
    assert events[-1]["usage"] == whole["usage"]
    for index, choice in enumerate(whole["choices"]):
        parts = [part for event in events for part in event["choices"] if part["index"] == index]
        assert "".join(part["text"] for part in parts) == choice["text"]
        assert [token for part in parts for token in part["token_ids"]] == choice["token_ids"]
        assert parts[0]["prompt_token_ids"] == [1, 2, 3]
        assert [part["finish_reason"] for part in parts] == [None] * (len(parts) - 1) + ["length"]


def test_stop_strings_end_the_text_and_the_stream(client: httpx.Client) -> None:
    body: dict[str, Any] = {"prompt": [9], "max_tokens": 200, "seed": 6, "ignore_eos": True, "return_token_ids": True}
    text = ask(client, **body)["choices"][0]["text"]
    stop = text[20:24]
    choice = ask(client, **body, stop=[stop])["choices"][0]
    assert choice["text"] == text[: text.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    parts = [part for event in stream(client, PATH, body | {"stop": stop}) for part in event["choices"]]
    assert "".join(part["text"] for part in parts) == choice["text"]
    assert [token for part in parts for token in part["token_ids"]] == choice["token_ids"]


def test_tokens_can_be_named_by_id(client: httpx.Client) -> None:
    answer = ask(client, prompt=[1], max_tokens=1, logprobs=2, return_token_ids=True, return_tokens_as_token_ids=True)
    choice = answer["choices"][0]
    assert choice["logprobs"]["tokens"] == [f"token_id:{choice['token_ids'][0]}"]
    assert all(name.startswith("token_id:") for name in choice["logprobs"]["top_logprobs"][0])
