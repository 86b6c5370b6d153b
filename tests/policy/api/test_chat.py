# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import httpx
import pytest
from renderers import Qwen35RendererConfig
from renderers.qwen35 import Qwen35Renderer
from transformers import Qwen3ForCausalLM

from nemo_gym_polar.policy.api.service import PolicyService
from tests.support.events import stream
from tests.support.policies import TOLERANCE, reference

PATH = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
HISTORY: list[dict[str, Any]] = [
    {"role": "developer", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}]},
    {"role": "user", "content": "list"},
    {
        "role": "assistant",
        "content": None,
        "reasoning": "hm",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls", "n": [1]}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "a.txt"},
]


def ask(client: httpx.Client, **body: Any) -> dict[str, Any]:
    reply = client.post(PATH, json={"messages": HI, "max_tokens": 20, "seed": 1} | body)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def test_ids_and_logprobs_are_complete_and_exact(client: httpx.Client, model: Qwen3ForCausalLM) -> None:
    answer = ask(client, logprobs=True, top_logprobs=2, return_token_ids=True)
    choice, prompt = answer["choices"][0], answer["prompt_token_ids"]
    ids = choice["token_ids"]
    expected = reference(model, prompt + ids)
    assert len(ids) == len(choice["logprobs"]["content"]) == answer["usage"]["completion_tokens"]
    for place, entry in enumerate(choice["logprobs"]["content"]):
        assert entry["logprob"] == pytest.approx(float(expected[len(prompt) - 1 + place, ids[place]]), abs=TOLERANCE)
        assert len(entry["top_logprobs"]) == 2
        assert entry["token"] == bytes(entry["bytes"]).decode(errors="replace")
    assert answer["usage"]["prompt_tokens"] == len(prompt)


def test_ids_and_logprobs_come_only_if_asked_for(client: httpx.Client) -> None:
    answer = ask(client)
    assert answer["prompt_token_ids"] is None
    assert answer["choices"][0]["token_ids"] is None
    assert answer["choices"][0]["logprobs"] is None
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["role"] == "assistant"


@pytest.mark.parametrize("thinking", [False, True])
def test_the_prompt_is_that_of_renderers(client: httpx.Client, service: PolicyService, thinking: bool) -> None:
    renderer = Qwen35Renderer(service.tokenizer, Qwen35RendererConfig(enable_thinking=thinking))
    canonical = [{**HISTORY[0], "role": "system"}, HISTORY[1], {**HISTORY[2], "reasoning_content": "hm"}, HISTORY[3]]
    expected = renderer.render_ids(canonical, tools=[TOOL], add_generation_prompt=True)
    settings = {"chat_template_kwargs": {"enable_thinking": thinking}, "tools": [TOOL], "messages": HISTORY}
    assert ask(client, return_token_ids=True, **settings)["prompt_token_ids"] == expected
    tokenized = client.post("/tokenize", json=settings).json()
    assert tokenized["tokens"] == expected
    assert (tokenized["count"], tokenized["max_model_len"]) == (len(expected), 2000)


def test_an_end_token_is_among_the_ids(client: httpx.Client, service: PolicyService) -> None:
    end = service.markers.turn_end
    found = [
        choice
        for seed in range(0, 100, 20)
        for choice in ask(client, n=20, seed=seed, max_tokens=100, return_token_ids=True)["choices"]
    ]
    stopped = [choice for choice in found if choice["finish_reason"] in ("stop", "tool_calls")]
    assert stopped
    assert all(choice["token_ids"][-1] in service.end_tokens for choice in stopped)
    assert end in service.end_tokens


@pytest.mark.parametrize("thinking", [False, True])
def test_events_join_to_the_whole(client: httpx.Client, thinking: bool) -> None:
    body: dict[str, Any] = {
        "messages": HI,
        "tools": [TOOL],
        "max_tokens": 80,
        "seed": 3,
        "n": 3,
        "logprobs": True,
        "return_token_ids": True,
        "chat_template_kwargs": {"enable_thinking": thinking},
    }
    whole = client.post(PATH, json=body).json()
    events = stream(client, PATH, body | {"stream_options": {"include_usage": True}})
    assert events[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    assert events[-1]["usage"] == whole["usage"]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    for index, choice in enumerate(whole["choices"]):
        parts = [part for event in events for part in event["choices"] if part["index"] == index]
        assert parts[0]["delta"]["role"] == "assistant"
        for field in ("content", "reasoning"):
            assert "".join(part["delta"].get(field, "") for part in parts) == (choice["message"][field] or "")
        assert [token for part in parts[1:] for token in part["token_ids"]] == choice["token_ids"]
        entries = [entry for part in parts[1:] for entry in part["logprobs"]["content"]]
        assert [entry["token"] for entry in entries] == [entry["token"] for entry in choice["logprobs"]["content"]]
        assert [part["finish_reason"] for part in parts][-1] == choice["finish_reason"]
        assert all(part["finish_reason"] is None for part in parts[:-1])


def test_a_stop_string_cuts_the_message_alike(client: httpx.Client) -> None:
    body: dict[str, Any] = {"messages": HI, "max_tokens": 200, "seed": 5, "ignore_eos": True}
    content = client.post(PATH, json=body).json()["choices"][0]["message"]["content"]
    stop = content[30:33]
    choice = client.post(PATH, json=body | {"stop": [stop]}).json()["choices"][0]
    assert choice["message"]["content"] == content[: content.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    events = stream(client, PATH, body | {"stop": [stop]})
    shown = "".join(part["delta"].get("content", "") for event in events for part in event["choices"])
    assert shown == choice["message"]["content"]


def test_texts_and_tokens_convert(client: httpx.Client) -> None:
    text = "<|im_start|>user\nhello, world\n<think>"
    tokenized = client.post("/tokenize", json={"prompt": text, "return_token_strs": True}).json()
    assert "".join(tokenized["token_strs"]) == text
    assert client.post("/detokenize", json={"tokens": tokenized["tokens"]}).json() == {"prompt": text}
