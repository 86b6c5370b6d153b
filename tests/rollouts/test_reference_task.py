# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The reference system's TaskRequest, as its paper and its users write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nemo_gym_polar.rollouts.admission import check_request
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.specs import AgentSpec, BuilderSpec, EvaluatorSpec, PrepareAction, RuntimeSpec
from nemo_gym_polar.rollouts.task import EarlyStop, TaskRequest, sampling_seed

FIXTURES = Path(__file__).parent / "fixtures"

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words.filter(lambda name: name not in ("agent_timeout", "eval_sampling_seed_base")), values)
texts = st.dictionaries(words, words, max_size=3)
execs = st.builds(
    PrepareAction,
    type=st.just("exec"),
    command=words,
    cwd=st.none() | words,
    env=st.none() | texts,
    max_attempts=st.integers(1, 10),
    retry_backoff_seconds=st.floats(0, 60),
)
uploads = st.builds(
    PrepareAction,
    type=st.sampled_from(["upload_file", "upload_dir"]),
    source=words,
    target=words,
    command=st.none(),
    cwd=st.none(),
    env=st.none(),
    max_attempts=st.just(1),
    retry_backoff_seconds=st.just(0.0),
)
actions = st.lists(execs | uploads, max_size=3).map(tuple)
requests = st.builds(
    TaskRequest,
    task_id=words,
    instruction=words,
    num_samples=st.integers(5, 64),
    dispatch_priority=st.integers(0, 100),
    early_stop_min_usable_sessions=st.none() | st.integers(1, 5),
    early_stop=st.sampled_from(EarlyStop),
    timeout_seconds=st.floats(0.001, 1e6),
    runtime=st.builds(
        RuntimeSpec,
        backend=words,
        files=texts,
        settings=objects,
        prepare=actions,
        eval_prepare=st.none() | actions,
        env=texts,
        image=st.none() | words,
        network=st.none() | words,
        allow_internet=st.none() | st.booleans(),
        workdir=st.none() | words,
        kwargs=objects,
    ),
    agent=st.builds(AgentSpec, harness=words, model_name=words, settings=objects, env=texts),
    builder=st.builds(BuilderSpec, strategy=words, config=objects),
    evaluator=st.builds(EvaluatorSpec, strategy=words, config=objects, env=texts, refresh_runtime=st.booleans()),
    callback_url=st.none() | st.just("http://127.0.0.1:9/x"),
    metadata=objects,
)


@given(requests)
def test_what_is_kept_is_what_was_asked(request: TaskRequest) -> None:
    assert TaskRequest.model_validate_json(request.model_dump_json()) == request
    assert TaskRequest.model_validate(request.model_dump(mode="json")) == request


def fixture(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / name).read_text())
    return found


def test_the_papers_example_is_understood_in_every_key() -> None:
    given = fixture("reference_task.json")
    request = TaskRequest.model_validate(given)
    assert (request.num_samples, request.timeout_seconds, request.agent.harness) == (8, 1200, "codex")
    assert (request.runtime.backend, request.runtime.network, request.builder.strategy) == (
        "docker",
        "host",
        "prefix_merging",
    )
    assert (request.evaluator.strategy, request.evaluator.refresh_runtime) == ("swebench_harness", True)
    assert request.metadata == given["metadata"]
    assert request.callback_url == given["callback_url"]
    assert [action.type for action in request.runtime.prepare] == ["upload_file", "exec"]
    assert TaskRequest.model_validate_json(request.model_dump_json()) == request


def test_what_its_users_send_is_understood() -> None:
    request = TaskRequest.model_validate(fixture("reference_shell_task.json"))
    assert request.agent.harness == "shell"
    assert request.agent.settings["command"].startswith("cd /polar/session/workspace || exit\n")
    assert request.agent.settings["env"] == {"STEPS": "3"}
    assert (request.evaluator.strategy, request.runtime.backend) == ("session_completed", "bubblewrap")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runtime": {"backend": "docker", "image": "x"}}, "runtime.backend='docker' is unknown: choose one of"),
        ({"runtime": {"image": "x"}}, "runtime.image='x': bubblewrap runs no images"),
        ({"runtime": {"network": "host"}}, "runtime.network='host'"),
        ({"runtime": {"allow_internet": True}}, "runtime.allow_internet"),
        ({"runtime": {"gpus": 1}}, "runtime.gpus=1"),
        ({"runtime": {"workdir": "/usr/x"}}, "runtime.workdir='/usr/x'"),
        ({"runtime": {"import_path": "a:B"}}, "runtime.import_path='a:B'"),
        ({"runtime": {"kwargs": {"volumes": ["/a:/b"]}}}, "runtime.kwargs="),
        ({"agent": {"import_path": "nowhere:Harness"}}, "agent.harness='nowhere:Harness' can't be imported"),
        ({"agent": {"harness": "mini_swe_agent"}}, "agent.harness='mini_swe_agent' is unknown"),
        ({"evaluator": {"strategy": "harbor"}}, "evaluator.strategy='harbor' is unknown"),
    ],
)
def test_what_nobody_here_can_do_is_refused_at_the_door(change: dict[str, Any], words: str) -> None:
    request = TaskRequest.model_validate({"task_id": "one", "instruction": "x", **change})
    with pytest.raises(RolloutError) as refused:
        check_request(request)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_a_sandbox_can_do_is_admitted() -> None:
    runtime = {"workdir": "/testbed", "env": {"A": "b"}, "cpus": 1, "memory_mb": 512, "storage_mb": 64, "gpus": 0}
    agent = {"harness": "pi", "mcp_servers": [{"name": "t", "command": "true"}], "skills_path": None}
    network = {"network": "none", "allow_internet": False}
    check_request(
        TaskRequest.model_validate(
            {"task_id": "one", "instruction": "x", "runtime": {**runtime, **network}, "agent": {"harness": "pi"}}
        )
    )
    assert TaskRequest.model_validate({"task_id": "a", "instruction": "x", "agent": agent}).agent.settings == {
        "mcp_servers": [{"name": "t", "command": "true"}]
    }


@pytest.mark.parametrize(
    "agent",
    [
        {"harness": "pi", "import_path": "a:B"},
        {"harness": "pi", "custom_shell": {"command": "true"}},
        {"harness": "shell", "custom_shell": {"command": "true"}, "settings": {"command": "false"}},
        {"harness": "shell", "custom_shell": {"command": "true", "unknown": 1}},
        {"harness": "pi", "skills_path": "/a", "settings": {"skills": "/b"}},
        {"harness": "pi", "colour": "green"},
    ],
)
def test_an_agent_said_twice_or_wrongly_is_refused(agent: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TaskRequest.model_validate({"task_id": "one", "instruction": "x", "agent": agent})


def test_seeds_are_distinct_and_stable() -> None:
    metadata = {"eval_sampling_seed_base": 1234}
    assert [sampling_seed(metadata, sample) for sample in range(3)] == [1234, 1235, 1236]
    assert sampling_seed({}, 1) is None
    for wrong in ("7", 1.5, True, -1):
        with pytest.raises(ValidationError):
            TaskRequest(task_id="one", instruction="x", metadata={"eval_sampling_seed_base": wrong})
