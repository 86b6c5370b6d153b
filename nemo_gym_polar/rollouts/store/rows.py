# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Records to rows and back."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlalchemy import Row

from nemo_gym_polar.rollouts.control.records import EventRecord, NodeRecord, SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.task import TaskRequest

KEPT_ONCE = {"request", "created", "total_sessions"}  # a task's parts that never change


def changed_task(task: TaskRecord) -> dict[str, Any]:
    row = task.model_dump(exclude=KEPT_ONCE)
    return {**row, "state": str(task.state), "error": clean(task.error)}


def new_task(task: TaskRecord) -> dict[str, Any]:
    request = task.request
    return {
        **changed_task(task),
        "created": task.created,
        "total_sessions": task.total_sessions,
        "harness": request and request.agent.harness,
        "request": request and request.model_dump_json(),
    }


def read_task(row: Row[*tuple[Any, ...]]) -> TaskRecord:
    fields = dict(row._mapping)
    request = fields.pop("request")
    del fields["harness"]
    return TaskRecord(**fields, request=None if request is None else read_request(fields["task_id"], request))


def read_request(task_id: str, text: str) -> TaskRequest:
    """Raises `StoreError` for one that another version of this program accepted and this one doesn't."""
    try:
        return TaskRequest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoreError(
            f"store: the request of task {task_id!r} is not one of this version ({where}: {first['msg']}); "
            "go on with the version that stored it, or start a new store"
        ) from None


def session(record: SessionRecord) -> dict[str, Any]:
    row = record.model_dump()
    texts = {name: clean(row[name]) for name in ("error", "lost", "cancelling", "first_prompt")}
    return {**row, **texts, "status": str(record.status)}


def read_session(row: Row[*tuple[Any, ...]]) -> SessionRecord:
    return SessionRecord(**row._mapping)


def event(record: EventRecord) -> dict[str, Any]:
    return record.model_dump(exclude={"id"})


def read_event(row: Row[*tuple[Any, ...]]) -> EventRecord:
    return EventRecord(**row._mapping)


def node(record: NodeRecord) -> dict[str, Any]:
    return record.model_dump(include={"node_id", "kind", "url", "state", "seen", "metadata"})


def read_node(row: Row[*tuple[Any, ...]]) -> NodeRecord:
    return NodeRecord(**row._mapping)


def clean(text: str | None) -> str | None:
    """PostgreSQL takes no NUL in a text."""
    return None if text is None else text.replace("\0", "\N{REPLACEMENT CHARACTER}")
