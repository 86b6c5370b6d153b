# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks by their end, sessions by their task and by what counts: what is removed, and what is asked most."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_tasks_ended", "tasks", ["ended", "task_id"])
    op.create_index("ix_sessions_task_id", "sessions", ["task_id"])
    op.create_index("ix_sessions_current", "sessions", ["current", "status"])


def downgrade() -> None:
    op.drop_index("ix_sessions_current", "sessions")
    op.drop_index("ix_sessions_task_id", "sessions")
    op.drop_index("ix_tasks_ended", "tasks")
