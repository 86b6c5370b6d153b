# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the parts of the control plane share: the nodes, the ledger, and the work that goes on in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from nemo_gym_polar.rollouts.control.ledger import Ledger
from nemo_gym_polar.rollouts.control.member import Member
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.control.trouble import Backoff, Trouble, persist
from nemo_gym_polar.rollouts.store.store import Store

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Announced:
    """What the nodes were told of the policy's weights last; one that comes later is told the same. `paused` is None
    before anybody said anything: nodes stay as they are then."""

    paused: bool | None = None
    version: str | None = None


class Roster:
    """`wake` is set when something changed that may let a session be placed."""

    def __init__(self, store: Store, settings: ControlSettings) -> None:
        self.settings = settings
        self.members: dict[str, Member] = {}
        self.ledger = Ledger(store, self._reloaded)
        self.trouble = Trouble()
        self.weights = Announced()
        self.wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("a part of the control plane ended", exc_info=error)
            self.trouble.begin("program", f"a part of the control plane ended: {error!r}; restart the service")

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def backoff(self) -> Backoff:
        return Backoff(self.settings)

    async def persist(self, work: Callable[[], Awaitable[None]]) -> None:
        await persist("store", work, self.trouble, self.backoff())

    def _reloaded(self) -> None:
        """A write that seemed to fail may have been done: every node is compared with the store again."""
        for member in self.members.values():
            member.attached = False
        self.wake.set()
