# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""With what prompt a session began, and which samples of a task began with another one than their group."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("first_prompt", sa.Text))
    op.add_column("tasks", sa.Column("first_prompt_mismatches", sa.JSON))


def downgrade() -> None:
    op.drop_column("tasks", "first_prompt_mismatches")
    op.drop_column("sessions", "first_prompt")
