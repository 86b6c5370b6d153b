# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What Alembic runs; the connection comes from `migrate.py`, in the configuration's attributes."""

from __future__ import annotations

from alembic import context

from nemo_gym_polar.rollouts.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
