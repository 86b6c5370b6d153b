# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nemo_gym_polar.environment.rows import AGENT_REF, RowError, instruction, row, task_request
from nemo_gym_polar.rollouts.task import EvaluatorSpec, RuntimeSpec, TaskRequest

texts = st.text(min_size=1).filter(str.strip)
tasks = st.builds(
    TaskRequest,
    task_id=texts,
    instruction=texts,
    timeout_seconds=st.floats(1, 1e4),
    runtime=st.builds(RuntimeSpec, files=st.dictionaries(texts, st.text(), max_size=3)),
    evaluator=st.builds(EvaluatorSpec, config=st.dictionaries(texts, st.integers(), max_size=3)),
    metadata=st.dictionaries(texts, st.booleans(), max_size=3),
)


@given(tasks)
def test_a_task_survives_its_row(task: TaskRequest) -> None:
    assert task_request(row(task), {}) == task


def test_the_row_wins_object_by_object() -> None:
    defaults = {"timeout_seconds": 9.0, "agent": {"harness": "pi", "settings": {"reasoning": True, "tools": ["a"]}}}
    own = {"task_id": "t", "agent": {"settings": {"tools": ["b"]}}}
    task = task_request({"responses_create_params": {"input": "go"}, "task": own}, defaults)
    assert (task.timeout_seconds, task.agent.harness) == (9.0, "pi")
    assert task.agent.settings == {"reasoning": True, "tools": ["b"]}
    assert task.num_samples == 1


def test_a_row_without_a_task_is_named_by_its_index() -> None:
    assert task_request({"responses_create_params": {"input": "go"}, "_ng_task_index": 7}, {}).task_id == "7"


@pytest.mark.parametrize(
    ("given_input", "text"),
    [
        ("plain", "plain"),
        ([{"role": "system", "content": "be kind"}, {"role": "user", "content": "one"}], "one"),
        (
            [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}],
            "ab",
        ),
        ([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}], "one\n\ntwo"),
    ],
)
def test_the_instruction_is_what_the_user_says(given_input: Any, text: str) -> None:
    assert instruction(given_input) == text


@pytest.mark.parametrize("bad", [[], [{"role": "system", "content": "alone"}], [{"role": "user", "content": ""}]])
def test_no_user_text_is_no_task(bad: Any) -> None:
    with pytest.raises(RowError, match="holds no user text"):
        instruction(bad)


def test_what_is_no_task_is_refused_by_name() -> None:
    with pytest.raises(RowError, match="task is 'x'"):
        task_request({"responses_create_params": {"input": "go"}, "task": "x"}, {})
    with pytest.raises(ValidationError, match="timeout"):
        task_request({"responses_create_params": {"input": "go"}, "task": {"timeout": 3}}, {})


def test_a_row_names_its_agent() -> None:
    assert row(TaskRequest(task_id="t", instruction="go"))["agent_ref"] == AGENT_REF
