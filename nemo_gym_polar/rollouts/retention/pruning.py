# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Removes ended tasks that are beyond the bounds, files first.

Invariant: what has not ended, or somebody is still to be told of, stays. A removal that breaks off is done to its end
the next time, since the store names a task until its files are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.retention.ended import DAY, EndedTask, EndedTasks
from nemo_gym_polar.rollouts.retention.pruned import Pruned
from nemo_gym_polar.rollouts.retention.settings import Bounds, RetentionSettings
from nemo_gym_polar.rollouts.store.errors import StoreError

logger = logging.getLogger(__name__)

PAGE = 50  # tasks


class Pruner:
    def __init__(self, control: Coordinator) -> None:
        self.control = control
        self.ended = EndedTasks(control.store)
        self.directory = control.settings.directory

    async def prune(self, bounds: Bounds, *, dry_run: bool = False) -> Pruned:
        """Raises `StoreError`; what was removed until then is."""
        now, after, done = time.time(), None, Pruned(dry_run=dry_run)
        beyond = None if bounds.keep_tasks is None else await self.ended.newest_beyond(bounds.keep_tasks)
        while page := await self.ended.page(bounds, now, beyond, after, PAGE):
            after = page[-1].place
            free = [task for task in page if not task.held]
            gone = free if dry_run else await self._remove(free, journals=bounds.journals)
            done.tasks += len(gone)
            done.sessions += sum(len(task.session_ids) for task in gone)
            done.held += len(page) - len(free)
            done.failed += len(free) - len(gone)
        if bounds.keep_days is not None and not dry_run:
            await self.ended.remove_events(now - bounds.keep_days * DAY)
        return done

    async def _remove(self, tasks: Sequence[EndedTask], *, journals: bool) -> Sequence[EndedTask]:
        gone = [task for task in tasks if await asyncio.to_thread(self._remove_files, task, journals)]
        if gone:
            async with self.control.ledger.turn():  # nobody is about to store a late result of theirs
                await self.ended.remove([task.task_id for task in gone])
        return gone

    def _remove_files(self, task: EndedTask, journals: bool) -> bool:
        try:
            for name in task.session_ids:
                remove_session(self.directory, name, journals=journals)
        except OSError as error:
            logger.error("task %s is kept: its files can't be removed: %s", task.task_id, error)
            return False
        return True


def remove_session(directory: Path, session_id: str, *, journals: bool) -> None:
    """What the service's directory has of a session; what is gone already is no error."""
    if journals:
        (directory / "journals" / f"{session_id}.journal").unlink(missing_ok=True)
    (directory / "traces" / f"{session_id}.jsonl").unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(directory / "sessions" / session_id)


class Retention:
    """Prunes by itself as long as it is entered, if there is a bound."""

    def __init__(self, control: Coordinator, settings: RetentionSettings) -> None:
        self.pruner = Pruner(control)
        self.settings = settings
        self._loop: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self.settings.bounded:
            self._loop = self.pruner.control.roster.spawn(self._forever())  # which tells if it breaks
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _forever(self) -> None:
        while True:
            try:
                done = await self.pruner.prune(self.settings)
            except StoreError as error:
                logger.warning("nothing is removed: %s", error)
            else:
                if done.tasks:
                    logger.info("removed %d ended tasks with %d sessions", done.tasks, done.sessions)
            await asyncio.sleep(self.settings.every)
