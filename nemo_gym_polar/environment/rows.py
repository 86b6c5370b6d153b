# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A dataset row as a task, and a task as a dataset row.

A row is `{"responses_create_params": {"input": …}, "task": {…}}`: the user's text is the instruction, and `task` holds
any other field of a task (files, evaluator, harness, time limit). What it leaves open comes from the agent's settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemo_gym_polar.rollouts.task import TaskRequest

SAMPLING = "sampling"
"""Where a task's metadata holds the sampling values of its row; NeMo RL stamps those on every row."""

_SAMPLING_FIELDS = ("temperature", "top_p", "max_output_tokens")

AGENT_REF = {"type": "responses_api_agents", "name": "polar_agent"}


class RowError(ValueError):
    """A row that is no task; the message names the field."""


def instruction(given: str | list[dict[str, Any]]) -> str:
    """The text of a row's `input`: a string, or the text of its user messages."""
    if isinstance(given, str):
        return given
    texts = [_text(item.get("content", "")) for item in given if item.get("role") == "user"]
    if not any(texts):
        raise RowError("responses_create_params.input holds no user text: that text is the task's instruction")
    return "\n\n".join(texts)


def task_request(row: Mapping[str, Any], defaults: Mapping[str, Any]) -> TaskRequest:
    """The one session that a row asks for. Raises `RowError`, or pydantic's `ValidationError`."""
    if "input" not in (row.get("responses_create_params") or {}):
        raise RowError("responses_create_params.input is missing: it holds the task's instruction")
    own = row.get("task") or {}
    if not isinstance(own, Mapping):
        raise RowError(f"task is {own!r}: give an object with the fields of a task")
    merged = _merge(defaults, own)
    merged.setdefault("task_id", str(row.get("_ng_task_index", "row")))
    params = row["responses_create_params"]
    sampling = {name: value for name in _SAMPLING_FIELDS if (value := params.get(name)) is not None}
    if sampling:
        merged["metadata"] = {**merged.get("metadata", {}), SAMPLING: sampling}
    return TaskRequest.model_validate({**merged, "instruction": instruction(params["input"]), "num_samples": 1})


def row(task: TaskRequest, fields: set[str] | None = None) -> dict[str, Any]:
    """The row that `task_request` turns back into `task`; `fields` are those that it fixes (None: all that are set)."""
    kept = task.model_dump(mode="json", exclude_unset=True, include=fields, exclude={"instruction", "num_samples"})
    message = {"role": "user", "content": task.instruction}
    return {"responses_create_params": {"input": [message]}, "agent_ref": AGENT_REF, "task": kept}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` wins, object by object; a list or a value replaces."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged
