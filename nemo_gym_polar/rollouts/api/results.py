# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks and sessions with their results, as answers and callbacks show them."""

from __future__ import annotations

import asyncio
from typing import Any

from nemo_gym_polar.rollouts.api.mismatches import mismatch_views
from nemo_gym_polar.rollouts.api.views import read_traces, session_view, task_view
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.errors import NoTracesError
from nemo_gym_polar.rollouts.control.records import SessionRecord, TaskRecord


class Results:
    """`traces`: with token arrays. Raises `NoTracesError` where their file is gone."""

    def __init__(self, control: Coordinator) -> None:
        self.control = control

    async def task(self, task: TaskRecord, *, traces: bool) -> dict[str, Any]:
        """With the sessions that count and have ended."""
        records = await self.control.sessions(task.task_id)
        ended = [record for record in records if record.current and record.status.final]
        directory = self.control.settings.directory
        odd = await asyncio.to_thread(mismatch_views, task, ended, directory) if task.first_prompt_mismatches else ()
        return task_view(task, [await self.session(record, traces=traces) for record in ended], odd)

    async def session(self, record: SessionRecord, *, traces: bool) -> dict[str, Any]:
        if not traces or record.result_path is None:
            return session_view(record)
        path = await self.control.traces(record.session_id)
        try:
            return session_view(record, await asyncio.to_thread(read_traces, path))
        except (OSError, ValueError, LookupError, TypeError) as error:  # it's gone, or somebody else wrote into it
            raise NoTracesError(f"the traces of session {record.session_id} can't be read: {error!r}") from error
