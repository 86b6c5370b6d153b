# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A user's mistake is a 4xx that names the field, never a 500, and leaves the server serving."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.policy.api.app import create_app
from nemo_gym_polar.policy.api.service import PolicyService

CHAT, COMPLETIONS, GENERATE = "/v1/chat/completions", "/v1/completions", "/inference/v1/generate"
HI = [{"role": "user", "content": "hi"}]

CASES: list[tuple[str, Any, int, str]] = [
    (CHAT, {"messages": HI, "model": "gpt-9"}, 404, "The model `gpt-9` does not exist; ask for `tiny`"),
    (CHAT, {"messages": HI, "model": 3}, 400, "model=3 is not valid: expected a string"),
    (CHAT, {}, 400, "messages=None is not valid: expected an array of at least one message"),
    (CHAT, {"messages": "hi"}, 400, "messages='hi' is not valid: expected an array of objects"),
    (CHAT, {"messages": [5]}, 400, "expected an array of objects"),
    (CHAT, {"messages": [{"content": "x"}]}, 400, "messages[0].role=None is not valid: expected a string"),
    (CHAT, {"messages": [{"role": "judge"}]}, 400, "messages[0].role='judge' is not valid: expected system, developer"),
    (CHAT, {"messages": [{"role": "user", "content": 4}]}, 400, "messages[0].content=4 is not valid"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "this model reads text only"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, 400, "messages[0].content[0].text=None"),
    (CHAT, {"messages": [*HI, {"role": "system", "content": ""}]}, 400, "System message must be at the beginning"),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{}]}]}, 400, "messages[0].tool_calls[0].function.name"),
    (
        CHAT,
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 3}}]}]},
        400,
        "function.arguments=3 is not valid: expected JSON text or an object",
    ),
    (CHAT, {"messages": HI, "tools": [{}]}, 400, "tools[0].function.name is missing"),
    (CHAT, {"messages": HI, "tools": {}}, 400, "tools={} is not valid: expected an array of objects"),
    (CHAT, {"messages": HI, "tool_choice": "required"}, 400, "tool_choice='required' is not supported; use 'auto'"),
    (CHAT, {"messages": HI, "response_format": {"type": "json_object"}}, 400, "response_format="),
    (CHAT, {"messages": HI, "chat_template_kwargs": {"tools": []}}, 400, "tools is a field of its own"),
    (CHAT, {"messages": HI, "chat_template": "x"}, 400, "chat_template='x' is not supported"),
    (CHAT, {"messages": HI, "continue_final_message": True}, 400, "continue_final_message=True is not supported"),
    (CHAT, {"messages": HI, "stream": "yes"}, 400, "stream='yes' is not valid: expected true or false"),
    (CHAT, {"messages": HI, "temperature": -1}, 400, "temperature=-1 is not valid: expected a number of at least 0"),
    (CHAT, {"messages": HI, "temperature": "hot"}, 400, "temperature='hot' is not valid: expected a number"),
    (CHAT, {"messages": HI, "top_p": 0}, 400, "top_p=0 is not valid: expected a number above 0"),
    (CHAT, {"messages": HI, "top_p": 1.5}, 400, "expected a number from 0.0 to 1.0"),
    (CHAT, {"messages": HI, "top_k": 1.5}, 400, "top_k=1.5 is not valid: expected an integer of at least -1"),
    (CHAT, {"messages": HI, "n": 0}, 400, "n=0 is not valid: expected an integer from 1 to 128"),
    (CHAT, {"messages": HI, "top_logprobs": 21}, 400, "expected an integer from 0 to 20"),
    (CHAT, {"messages": HI, "stop": [""]}, 400, "stop=[''] is not valid"),
    (CHAT, {"messages": HI, "stop_token_ids": ["a"]}, 400, "stop_token_ids=['a'] is not valid"),
    (CHAT, {"messages": HI, "max_tokens": True}, 400, "max_tokens=True is not valid: expected an integer"),
    (CHAT, {"messages": HI, "max_tokens": 5, "min_tokens": 9}, 400, "min_tokens=9 is not valid"),
    (CHAT, {"messages": HI, "presence_penalty": 0.5}, 400, "presence_penalty=0.5 is not supported; leave it 0"),
    (CHAT, {"messages": HI, "logit_bias": {"5": 1}}, 400, "logit_bias={'5': 1} is not supported; leave it {}"),
    (CHAT, {"messages": HI, "max_tokens": 5000}, 400, "maximum context length is 2000 tokens"),
    (COMPLETIONS, {}, 400, "prompt=None is not valid: expected text, an array of token ids, or an array of these"),
    (COMPLETIONS, {"prompt": ""}, 400, "none of them empty"),
    (COMPLETIONS, {"prompt": [1, -1]}, 400, "text or token ids from 0 to 1023"),
    (COMPLETIONS, {"prompt": [[1], "a", 5]}, 400, "text or token ids from 0 to 1023"),
    (COMPLETIONS, {"prompt": [1, True]}, 400, "text or token ids from 0 to 1023"),
    (COMPLETIONS, {"prompt": "a", "echo": True, "stream": True}, 400, "echo=true is not supported with stream=true"),
    (COMPLETIONS, {"prompt": "a", "suffix": "b"}, 400, "suffix='b' is not supported"),
    (COMPLETIONS, {"prompt": [1] * 2000}, 400, "maximum context length is 2000 tokens. However, your prompt contains"),
    (COMPLETIONS, {"prompt": [1] * 1990, "max_tokens": 11}, 400, "you requested 11 output tokens and your prompt"),
    (GENERATE, {}, 400, "token_ids=None is not valid: expected an array of token ids from 0 to 1023"),
    (GENERATE, {"token_ids": []}, 400, "token_ids=[] is empty; give at least one token"),
    (GENERATE, {"token_ids": [1024]}, 400, "token_ids=[1024] is not valid"),
    (GENERATE, {"token_ids": [1], "sampling_params": []}, 400, "sampling_params=[] is not valid: expected an object"),
    (GENERATE, {"token_ids": [1], "sampling_params": {"seed": "x"}}, 400, "sampling_params.seed='x' is not valid"),
    (GENERATE, {"token_ids": [1], "output_mode": "audio"}, 400, "expected 'tokens' or 'text'"),
    ("/tokenize", {"prompt": 1}, 400, "prompt=1 is not valid: expected a string"),
    ("/detokenize", {"tokens": "a"}, 400, "tokens='a' is not valid"),
    ("/pause?mode=soon", {}, 400, "mode='soon' is not valid: expected wait, abort, keep"),
    ("/collective_rpc", {}, 400, "method=None is not valid"),
    ("/collective_rpc", {"method": "sleep"}, 400, "method='sleep' is not supported; only 'reload_weights'"),
    (
        "/collective_rpc",
        {"method": "reload_weights", "kwargs": {"weights_path": "/no/where"}},
        400,
        "/no/where holds neither model.safetensors nor",
    ),
    ("/update_weight_version", {"new_version": 5}, 400, "new_version=5 is not valid: expected a string"),
    ("/nope", {}, 404, "/nope is not served here"),
    ("/health", {}, 405, "/health does not answer POST"),
]


@pytest.mark.parametrize(("path", "body", "status", "message"), CASES, ids=[case[3][:40] for case in CASES])
def test_mistakes_are_named(client: httpx.Client, path: str, body: Any, status: int, message: str) -> None:
    reply = client.post(path, json=body)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert error["code"] == status
    assert message in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("data", [b"{", b"[1]", b"null", b"5", b"\xff", b'{"a": NaN}', b'"' + b"[" * 5000])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, GENERATE, "/tokenize", "/collective_rpc"])
def test_a_body_that_is_no_json_object_is_refused(client: httpx.Client, path: str, data: bytes) -> None:
    reply = client.post(path, content=data)
    assert reply.status_code == 400
    assert "JSON" in reply.json()["error"]["message"]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 3000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=6,
)
NAMES = [
    "messages", "tools", "prompt", "token_ids", "stream", "stream_options", "n", "temperature",
    "top_p", "top_k", "stop", "seed", "logprobs", "top_logprobs", "echo", "chat_template_kwargs", "tool_choice",
    "model", "response_format", "prompt_logprobs", "min_tokens", "logit_bias", "stop_token_ids",
]  # fmt: skip


@settings(max_examples=40)
@given(st.sampled_from([CHAT, COMPLETIONS, GENERATE]), st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=4))
def test_nonsense_is_never_a_server_error(client: httpx.Client, path: str, fields: dict[str, Any]) -> None:
    valid = {"messages": HI, "prompt": "a", "token_ids": [1], "max_tokens": 1}
    reply = client.post(path, json=valid | {"sampling_params": {"max_tokens": 1} | fields} | fields)
    assert reply.status_code in (200, 400, 404), reply.text


@settings(max_examples=100)
@given(st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "reasoning"]), ANYTHING), min_size=1))
def test_nonsense_messages_are_never_a_server_error(client: httpx.Client, messages: list[dict[str, Any]]) -> None:
    messages = [{"role": "assistant", "content": ""} | message for message in messages]
    reply = client.post(CHAT, json={"messages": messages, "max_tokens": 1})
    assert reply.status_code in (200, 400), reply.text


@pytest.mark.parametrize(
    "neutral",
    [
        {"presence_penalty": 0, "frequency_penalty": 0.0, "repetition_penalty": 1.0, "min_p": 0.0, "top_k": -1},
        {"logit_bias": {}, "best_of": 1, "use_beam_search": False, "response_format": {"type": "text"}},
        {"temperature": None, "stop": None, "seed": None, "n": None, "tools": [], "tool_choice": "auto"},
        {"user": "me", "store": True, "metadata": {"a": 1}, "parallel_tool_calls": True, "never_heard_of": [1]},
    ],
)
def test_neutral_and_unknown_fields_are_accepted(client: httpx.Client, neutral: dict[str, Any]) -> None:
    reply = client.post(CHAT, json={"messages": HI, "max_tokens": 2} | neutral)
    assert reply.status_code == 200, reply.text


async def test_a_mistake_of_our_own_has_the_same_shape(service: PolicyService) -> None:
    """A service without its engine stands for any fault that nobody foresaw."""
    app = create_app(replace(service, engine=None))  # type: ignore[arg-type]  # the fault
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://policy") as broken:
        reply = await broken.post("/v1/completions", json={"prompt": "a"})
    assert reply.status_code == 500
    assert reply.json()["error"]["type"] == "InternalServerError"
