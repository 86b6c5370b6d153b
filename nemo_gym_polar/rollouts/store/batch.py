# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What is written at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from nemo_gym_polar.rollouts.control.records import EventRecord, NodeRecord, SessionRecord, TaskRecord
from nemo_gym_polar.rollouts.store import rows
from nemo_gym_polar.rollouts.store.tables import events, nodes, sessions, tasks


@dataclass(slots=True)
class Batch:
    """New and changed records. Events have no number yet; they get one in their order."""

    new_tasks: list[TaskRecord] = field(default_factory=list)
    tasks: list[TaskRecord] = field(default_factory=list)
    new_sessions: list[SessionRecord] = field(default_factory=list)
    sessions: list[SessionRecord] = field(default_factory=list)
    nodes: list[NodeRecord] = field(default_factory=list)
    gone_nodes: list[str] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)


async def write_batch(connection: AsyncConnection, batch: Batch) -> list[EventRecord]:
    """Changes go before new attempts: a sample has one current attempt at any time."""
    await insert(connection, tasks, [rows.new_task(task) for task in batch.new_tasks])
    await update(connection, tasks, "task_id", [rows.changed_task(task) for task in batch.tasks])
    await update(connection, sessions, "session_id", [rows.session(session) for session in batch.sessions])
    await insert(connection, sessions, [rows.session(session) for session in batch.new_sessions])
    for node_id in [*batch.gone_nodes, *(node.node_id for node in batch.nodes)]:
        await connection.execute(sa.delete(nodes).where(nodes.c.node_id == node_id))
    await insert(connection, nodes, [rows.node(node) for node in batch.nodes])
    return await append(connection, batch.events)


async def insert(connection: AsyncConnection, table: sa.Table, values: Sequence[dict[str, Any]]) -> None:
    if values:
        await connection.execute(sa.insert(table), values)


async def update(connection: AsyncConnection, table: sa.Table, key: str, values: Sequence[dict[str, Any]]) -> None:
    if values:
        names = [name for name in values[0] if name != key]
        statement = sa.update(table).where(table.c[key] == sa.bindparam("key"))
        statement = statement.values({name: sa.bindparam(f"new_{name}") for name in names})
        bound = [{"key": row[key], **{f"new_{name}": row[name] for name in names}} for row in values]
        await connection.execute(statement, bound)


async def append(connection: AsyncConnection, told: Sequence[EventRecord]) -> list[EventRecord]:
    if not told:
        return []
    statement = sa.insert(events).returning(events.c.id, sort_by_parameter_order=True)
    numbers = (await connection.scalars(statement, [rows.event(event) for event in told])).all()
    return [event.model_copy(update={"id": number}) for event, number in zip(told, numbers, strict=True)]
