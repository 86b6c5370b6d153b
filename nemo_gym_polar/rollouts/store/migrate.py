# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Brings a store's tables to what this version needs."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from nemo_gym_polar.rollouts.store.errors import StoreError


def migrate(connection: Connection) -> None:
    """Raises `StoreError` for a store that a newer version has written."""
    config = make_config(connection)
    script = ScriptDirectory.from_config(config)
    found = MigrationContext.configure(connection).get_current_revision()
    known = {revision.revision for revision in script.walk_revisions()}
    if found is not None and found not in known:
        raise StoreError(
            f"the store has schema {found}, and this version knows none newer than {script.get_current_head()}: "
            "install the nemo-gym-polar that wrote it, or choose another store"
        )
    if found != script.get_current_head():
        command.upgrade(config, "head")


def make_config(connection: Connection) -> Config:
    """For Alembic's commands."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
