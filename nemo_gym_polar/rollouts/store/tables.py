# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The store's tables. A change here needs a revision in migrations/versions."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)
number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up in INTEGER keys only

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("task_id", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("harness", sa.Text),
    sa.Column("request", sa.Text),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("ended", sa.Double),
    sa.Column("total_sessions", sa.Integer, nullable=False),
    sa.Column("ended_sessions", sa.Integer, nullable=False),
    sa.Column("usable_sessions", sa.Integer, nullable=False),
    sa.Column("selected_samples", sa.JSON(none_as_null=True)),
    sa.Column("error", sa.Text),
    sa.Column("first_prompt_mismatches", sa.JSON(none_as_null=True)),
    sa.Index("ix_tasks_created", "created"),
    sa.Index("ix_tasks_state", "state"),
    sa.Index("ix_tasks_ended", "ended", "task_id"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("session_id", sa.Text, primary_key=True),
    sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.task_id", ondelete="CASCADE"), nullable=False),
    sa.Column("sample", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("node_id", sa.Text),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("updated", sa.Double, nullable=False),
    sa.Column("reward", sa.Double),
    sa.Column("error", sa.Text),
    sa.Column("lost", sa.Text),
    sa.Column("current", sa.Boolean, nullable=False),
    sa.Column("usable", sa.Boolean, nullable=False),
    sa.Column("cancelling", sa.Text),
    sa.Column("moves", sa.Integer, nullable=False),
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("result_path", sa.Text),
    sa.Column("first_prompt", sa.Text),
    # A sample has one attempt that counts, whatever the program does.
    sa.Index(
        "one_current_attempt",
        "task_id",
        "sample",
        unique=True,
        sqlite_where=sa.text("current"),
        postgresql_where=sa.text("current"),
    ),
    sa.Index("ix_sessions_status", "status"),
    sa.Index("ix_sessions_task_id", "task_id"),
    sa.Index("ix_sessions_current", "current", "status"),  # counted at every scrape: rows are large
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", number, primary_key=True, autoincrement=True),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("task_id", sa.Text),
    sa.Column("session_id", sa.Text),
    sa.Column("node_id", sa.Text),
    sa.Column("data", sa.JSON, nullable=False),
    sa.Index("ix_events_task_id", "task_id"),
    sqlite_autoincrement=True,  # an id is never given twice, even after old events were removed
)

nodes = sa.Table(
    "nodes",
    metadata,
    sa.Column("node_id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("url", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("metadata", sa.JSON, nullable=False),
)

callbacks = sa.Table(
    "callbacks",
    metadata,
    sa.Column("id", number, primary_key=True, autoincrement=False),  # that of the event that is told of
    sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.task_id", ondelete="CASCADE"), nullable=False),
    sa.Column("session_id", sa.Text),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("due", sa.Double, nullable=False),
    sa.Column("error", sa.Text),
    sa.Index("ix_callbacks_state", "state", "due"),
    sa.Index("ix_callbacks_task_id", "task_id"),
)

cursors = sa.Table(
    "cursors",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("event", number, nullable=False),
)
