# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks, sessions, events, nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("harness", sa.Text),
        sa.Column("request", sa.Text),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("ended", sa.Double),
        sa.Column("total_sessions", sa.Integer, nullable=False),
        sa.Column("ended_sessions", sa.Integer, nullable=False),
        sa.Column("usable_sessions", sa.Integer, nullable=False),
        sa.Column("selected_samples", sa.JSON),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("task_id", name="pk_tasks"),
    )
    op.create_index("ix_tasks_created", "tasks", ["created"])
    op.create_index("ix_tasks_state", "tasks", ["state"])
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text),
        sa.Column("task_id", sa.Text, nullable=False),
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
        sa.Column("result", sa.JSON),
        sa.Column("result_path", sa.Text),
        sa.PrimaryKeyConstraint("session_id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_sessions_task_id", ondelete="CASCADE"),
    )
    where = sa.text("current")
    op.create_index(
        "one_current_attempt",
        "sessions",
        ["task_id", "sample"],
        unique=True,
        sqlite_where=where,
        postgresql_where=where,
    )
    op.create_index("ix_sessions_status", "sessions", ["status"])
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("node_id", sa.Text),
        sa.Column("data", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_task_id", "events", ["task_id"])
    op.create_table(
        "nodes",
        sa.Column("node_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="pk_nodes"),
    )


def downgrade() -> None:
    for name in ("nodes", "events", "sessions", "tasks"):
        op.drop_table(name)
