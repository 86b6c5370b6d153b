# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a trainer does between steps, and what a client that goes away leaves behind."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from transformers import Qwen3ForCausalLM

from tests.support.policies import TOLERANCE, random_tokens, reference
from tests.support.served_policy import serving

GENERATE = "/inference/v1/generate"
LONG: dict[str, Any] = {
    "token_ids": random_tokens(20),
    "sampling_params": {"max_tokens": 2000, "ignore_eos": True, "logprobs": 0, "seed": 1},
}


@pytest.fixture
def client(policy_dir: Path) -> Iterator[httpx.Client]:
    with serving(policy_dir) as (url, _), httpx.Client(base_url=url, timeout=30) as client:
        yield client


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def gauge(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"polar_engine_{name} "))


def busy(client: httpx.Client) -> bool:
    return gauge(client, "requests_running") > 0


def post(client: httpx.Client, path: str, **body: Any) -> Any:
    reply = client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def worst(model: Qwen3ForCausalLM, choice: dict[str, Any], start: int, end: int) -> float:
    ids = LONG["token_ids"] + choice["token_ids"]
    expected, first = reference(model, ids), len(LONG["token_ids"])
    entries = choice["logprobs"]["content"]
    return max(abs(entries[n]["logprob"] - float(expected[first + n - 1, ids[first + n]])) for n in range(start, end))


def test_a_refit_as_a_trainer_does_it(client: httpx.Client, other_dir: Path, other_model: Qwen3ForCausalLM) -> None:
    assert client.get("/is_paused").json() == {"is_paused": False}
    post(client, "/pause?mode=wait")
    assert client.get("/is_paused").json() == {"is_paused": True}
    post(client, "/collective_rpc", method="reload_weights", kwargs={"weights_path": str(other_dir)})
    post(client, "/reset_prefix_cache")
    post(client, "/update_weight_version", new_version="1")
    post(client, "/resume")
    assert client.get("/weight_info").json() == {"weight_version": "1"}
    short = LONG | {"sampling_params": LONG["sampling_params"] | {"max_tokens": 30}}
    choice = post(client, GENERATE, **short)["choices"][0]
    assert choice["weight_versions"] == [{"version": "1", "start": 0, "end": 30}]
    assert worst(other_model, choice, 0, 30) < TOLERANCE
    assert gauge(client, "weight_loads_total") == 1


def test_an_answer_across_new_weights_says_which_token_is_whose(
    client: httpx.Client, other_dir: Path, model: Qwen3ForCausalLM, other_model: Qwen3ForCausalLM
) -> None:
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(post, client, GENERATE, **LONG)
        until(lambda: busy(client))
        arguments = {"weights_path": str(other_dir), "weight_version": "1"}
        post(client, "/collective_rpc", method="reload_weights", kwargs=arguments)
        choice = answer.result()["choices"][0]
    old, new = choice["weight_versions"]
    assert (old["version"], old["start"], new["version"], new["end"]) == ("0", 0, "1", 2000)
    assert worst(model, choice, 0, old["end"]) < TOLERANCE
    assert worst(other_model, choice, new["start"], 2000) < TOLERANCE


def test_requests_wait_while_it_is_paused(client: httpx.Client) -> None:
    post(client, "/pause")
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(post, client, GENERATE, token_ids=[1], sampling_params={"max_tokens": 2})
        until(lambda: gauge(client, "requests_waiting") == 1)
        assert not answer.done()
        post(client, "/resume")
        assert answer.result()["choices"][0]["finish_reason"] in ("length", "stop")


def test_a_pause_can_cut_answers_off(client: httpx.Client) -> None:
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(post, client, GENERATE, **LONG)
        until(lambda: busy(client))
        post(client, "/pause?mode=abort")
        choice = answer.result()["choices"][0]
    assert choice["finish_reason"] == "abort"
    assert 0 < len(choice["token_ids"]) < 2000
    post(client, "/resume")


def test_refused_weights_leave_the_old_ones(client: httpx.Client, tmp_path: Path) -> None:
    reply = client.post("/collective_rpc", json={"method": "reload_weights", "kwargs": {"weights_path": str(tmp_path)}})
    assert reply.status_code == 400
    assert "the weights before stay in use" in reply.json()["error"]["message"]
    assert reply.json()["error"]["param"] == "kwargs.weights_path"
    assert client.get("/weight_info").json() == {"weight_version": "0"}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", GENERATE])
def test_a_client_that_hangs_up_stops_its_answer(client: httpx.Client, path: str, streamed: bool) -> None:
    forever = {"max_tokens": 4000, "ignore_eos": True, "stream": streamed}
    body = {"messages": [{"role": "user", "content": "x"}], "prompt": [1], "token_ids": [1], "sampling_params": forever}
    data = json.dumps(body | forever).encode()
    with socket.create_connection((client.base_url.host, int(client.base_url.port or 0))) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)
        until(lambda: busy(client))
    until(lambda: not busy(client))
    sampled = gauge(client, "sampled_tokens_total")
    assert sampled < 4000
    assert client.get("/health").status_code == 200


def test_what_it_says_of_itself(client: httpx.Client, policy_dir: Path) -> None:
    model = client.get("/v1/models").json()["data"][0]
    assert (model["id"], model["max_model_len"], model["root"]) == ("policy", 4096, str(policy_dir))
    assert client.get("/version").json()["version"]
    assert 'polar_engine_weights_info{version="0"} 1.0' in client.get("/metrics").text
