# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""`/run` of the real agent server against the real resources server: one result for every rollout, good or bad."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nemo_gym_polar.environment.rows import row
from tests.environment.gym_servers import Gym, gym_servers
from tests.environment.reference_walk import walk
from tests.support.fake_engine import FakeEngine
from tests.support.rollouts import ASK, task

GO = {"responses_create_params": {"input": "go"}}

pytest.importorskip("nemo_gym.base_resources_server")


@pytest.fixture
async def gym(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Gym]:
    async with gym_servers(engine, tmp_path, resources_timeout=2.0) as servers:
        yield servers


async def test_one_run_is_one_rollout(gym: Gym, engine: FakeEngine) -> None:
    result = await gym.run(row(task(evaluate="test -s answer.json")))
    read = walk(result)
    [served] = engine.served
    assert read.tokens == served.context + served.sampled
    assert (result["reward"], result["status"], result["mask_sample"]) == (1.0, "COMPLETED", False)
    assert result["seconds_running"] > 0.0
    assert result["evaluation"]["exit_code"] == 0


async def test_the_same_task_begins_with_the_same_tokens(gym: Gym) -> None:
    results = [await gym.run(row(task())) for _ in range(2)]
    assert walk(results[0]).first_prompt == walk(results[1]).first_prompt
    assert results[0]["first_prompt"] == results[1]["first_prompt"] != ""
    assert results[0]["session_id"] != results[1]["session_id"]


async def test_the_row_s_sampling_reaches_the_engine(gym: Gym, engine: FakeEngine) -> None:
    asked = row(task())
    asked["responses_create_params"] |= {"temperature": 1.0, "top_p": 1.0, "max_output_tokens": 1}
    assert walk(await gym.run(asked)).mask.count(True) == 1
    assert engine.served[0].parameters["max_tokens"] == 1


@pytest.mark.parametrize(
    ("command", "status", "failure"),
    [
        ("true", "ERROR", "rollout_error"),  # never calls the model
        (ASK + "ask hi; exit 3", "ERROR", "rollout_error"),  # crashes
        (ASK + "ask hi; sleep 600", "TIMEOUT", None),  # hangs: what it did is scored and counts
        (ASK + "post '{broken'", "ERROR", "rollout_error"),  # sends no JSON
        (ASK + "ask hi; yes", "ERROR", "rollout_error"),  # prints for ever
    ],
)
async def test_every_harness_gets_a_trainable_result(gym: Gym, command: str, status: str, failure: str | None) -> None:
    wish = task(command, evaluate="true", timeout_seconds=4.0, runtime={"output_mb": 1})
    result = await gym.run(row(wish))
    assert walk(result).turns == 1
    assert (result["status"], result.get("_ng_failure_class")) == (status, failure), result["error"]
    assert result["mask_sample"] is (failure is not None)
    assert result["instance_config"]["mask_sample"] is result["mask_sample"]


async def test_an_engine_that_fails_is_not_the_policy_s_fault(gym: Gym, engine: FakeEngine) -> None:
    engine.faults.extend(["nan"] * 9)
    result = await gym.run(row(task()))
    assert (result["mask_sample"], result["_ng_failure_class"]) == (True, "rollout_error")
    assert result["response"]["output"] == []


async def test_a_score_that_can_t_be_had_masks(gym: Gym) -> None:
    broken = task()
    broken.evaluator.config["score"] = "stdout"
    result = await gym.run(row(broken))
    assert (result["_ng_failure_class"], result["reward"]) == ("rollout_error", 0.0)
    assert "must print a finite number" in result["error"]
    assert walk(result).turns == 1


@pytest.mark.parametrize(
    ("bad", "failure", "message"),
    [
        ({"responses_create_params": {"input": []}}, "bad_row", "holds no user text"),
        ({}, "bad_row", "responses_create_params.input is missing"),
        ({"responses_create_params": {"input": "go"}, "task": {"typo": 1}}, "bad_row", "typo"),
        (
            {"responses_create_params": {"input": "go"}, "task": {"agent": {"harness": "no"}}},
            "bad_task",
            "harness='no'",
        ),
        ({"responses_create_params": {"input": "go"}, "task": {"agent": 3}}, "bad_row", "agent"),
    ],
)
async def test_a_bad_row_is_answered_too(gym: Gym, bad: dict[str, Any], failure: str, message: str) -> None:
    result = await gym.run(bad)
    assert (result["_ng_failure_class"], result["mask_sample"]) == (failure, True)
    assert message in result["error"]
    assert "input" in result["responses_create_params"]
    assert result.get("_ng_failure_terminal", False) is (failure == "bad_row")


async def test_a_dead_resources_server_is_answered_too(gym: Gym) -> None:
    whole = await gym.run(row(task()))
    await gym.resources.stop()
    result = await gym.run(row(task()))
    assert result["_ng_failure_class"] == "rollout_error"
    assert "no answer to /seed_session" in result["error"]
    numbers = [
        {key for key, value in made.items() if isinstance(value, bool | int | float)} for made in (whole, result)
    ]
    assert numbers[0] == numbers[1]


def numbers(result: dict[str, Any]) -> set[str]:
    return {key for key, value in result.items() if isinstance(value, bool | int | float)}


async def test_single_responses_are_not_this_agent_s_way(gym: Gym) -> None:
    async with gym.client.post(f"{gym.agent_url}/v1/responses", json={"input": "go"}) as reply:
        assert reply.status == 501
        assert "POST /run" in await reply.text()
