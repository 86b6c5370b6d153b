# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nemo_gym_polar.rollouts.settings import PartialRule
from nemo_gym_polar.tasks import load_task_set
from nemo_gym_polar.training.run_settings import TrainSettings
from nemo_gym_polar.training.sampling import choose_held_out, make_request


def test_groups_reach_the_rollout_service() -> None:
    settings = TrainSettings.model_validate(
        {"env": {"max_turns": 3, "failed_runs": "zero", "agent_timeout": 9}, "cluster": {"run_workers": 7}}
    )
    rollouts = settings.rollout_settings(Path("x"))
    assert (rollouts.directory, rollouts.max_turns, rollouts.run_workers) == (Path("x"), 3, 7)
    assert (rollouts.failed_runs, rollouts.agent_timeout) == (PartialRule.ZERO, 9)


def test_sampling_reaches_the_gateway() -> None:
    settings = TrainSettings.model_validate({"engine": {"sampling": {"temperature": 0.7, "max_tokens": 5}}})
    gateway = settings.gateway_settings(Path("x"))
    assert (gateway.sampling.temperature, gateway.sampling.max_tokens) == (0.7, 5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"engine": {"sampling": {"top_p": 0.9}}}, "top_p=0.9 cuts off"),
        ({"engine": {"sampling": {"top_k": 20}}}, "top_k=20 cuts off"),
        ({"engine": {"kind": "sglang"}}, "an SGLang must be running"),
        ({"engine": {"kind": "vllm", "sampling": {"temperature": 0.7}}}, "set logprobs=processed"),
        ({"engine": {"sampling": {"temperature": 0}}}, "temperature=0 gives every sample"),
        ({"env": {"group": 3}}, r"env\.group\n  Extra inputs"),
        ({"trainer": {"optimizer": {"lr": -1}}}, r"trainer\.optimizer\.lr"),
        ({"name": "../x"}, "name"),
        ({"policy": {"size": "huge"}}, r"policy\.size"),
    ],
)
def test_what_can_not_be_is_refused_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TrainSettings.model_validate(values)


def test_a_key_is_never_written_down() -> None:
    settings = TrainSettings.model_validate({"engine": {"api_key": "secret"}})
    assert "secret" not in str(settings.model_dump(mode="json"))


def test_held_out_tasks_are_the_same_for_the_same_seed() -> None:
    rows = load_task_set("touch", seed=0).heldout
    settings = TrainSettings.model_validate({"env": {"heldout": 5}})
    chosen = choose_held_out(rows, settings)
    assert len(chosen) == 5
    assert chosen == choose_held_out(rows, settings)
    assert chosen != choose_held_out(rows, settings.model_copy(update={"seed": 1}))
    every = TrainSettings.model_validate({"env": {"heldout": None}})
    assert len(choose_held_out(rows, every)) == len(rows)


def test_a_request_is_the_row_with_the_settings() -> None:
    row = load_task_set("touch", seed=0).train[0]
    settings = TrainSettings.model_validate({"env": {"timeout": 5}, "harness": {"harness": "shell"}})
    request = make_request(row, 3, settings)
    assert (request.num_samples, request.timeout_seconds, request.agent.harness) == (3, 5, "shell")
    assert request.evaluator == row.evaluator
    other = TrainSettings.model_validate({"evaluator": {"strategy": "command", "config": {"command": "true"}}})
    assert make_request(row, 1, other).evaluator.config == {"command": "true"}
