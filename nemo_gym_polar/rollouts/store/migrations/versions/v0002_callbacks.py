# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks that are to be made, and how far the events have been read for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "callbacks",
        sa.Column("id", number, autoincrement=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_callbacks"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.task_id"], ondelete="CASCADE", name="fk_callbacks_task_id"),
    )
    op.create_index("ix_callbacks_state", "callbacks", ["state", "due"])
    op.create_index("ix_callbacks_task_id", "callbacks", ["task_id"])
    op.create_table(
        "cursors",
        sa.Column("name", sa.Text),
        sa.Column("event", number, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_cursors"),
    )


def downgrade() -> None:
    for name in ("cursors", "callbacks"):
        op.drop_table(name)
