# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What is told of a change. Events have no number until they are stored."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

from nemo_gym_polar.rollouts.control.records import EventRecord, SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.task import SessionStatus

logger = logging.getLogger(__name__)

SESSION_FIELDS = ("sample", "attempt", "reward", "error", "lost", "current", "usable")
TASK_FIELDS = (
    "total_sessions",
    "ended_sessions",
    "usable_sessions",
    "selected_samples",
    "error",
    "first_prompt_mismatches",
)


def event(kind: str, **fields: Any) -> EventRecord:
    return EventRecord(id=0, time=time.time(), kind=kind, **fields)


def session_event(record: SessionRecord) -> EventRecord:
    placed = record.status is SessionStatus.QUEUED and record.node_id is not None
    kind = "session.placed" if placed else f"session.{record.status.lower()}"
    data = given(record, SESSION_FIELDS)
    return event(kind, task_id=record.task_id, session_id=record.session_id, node_id=record.node_id, data=data)


def task_event(task: TaskRecord) -> EventRecord:
    return event(f"task.{task.state}", task_id=task.task_id, data=given(task, TASK_FIELDS))


def late_event(record: SessionRecord) -> EventRecord:
    """A session that was given up has a result after all."""
    data = given(record, SESSION_FIELDS)
    return event("session.late_result", task_id=record.task_id, session_id=record.session_id, data=data)


def warn(tasks: Iterable[TaskRecord]) -> None:
    """Of what a trainer that groups by first prompts would trip over."""
    for task in tasks:
        if task.ended is not None and task.first_prompt_mismatches:
            odd = ", ".join(map(str, task.first_prompt_mismatches))
            logger.warning("task %s: samples that begin with another prompt than their group: %s", task.task_id, odd)


def given(record: SessionRecord | TaskRecord, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(record, name)) is not None}
