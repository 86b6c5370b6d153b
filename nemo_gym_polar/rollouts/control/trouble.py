# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What keeps the control plane from its work at the moment, for its state and its log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.store.errors import StoreError

logger = logging.getLogger(__name__)


class Trouble:
    """By where it arose; said in the log once, when it begins."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def begin(self, where: str, error: str) -> None:
        if self._found.get(where) != error:
            logger.error("%s", error)
        self._found[where] = error

    def end(self, where: str) -> None:
        if self._found.pop(where, None):
            logger.info("%s: works again", where)

    @property
    def text(self) -> str | None:
        return "; ".join(dict.fromkeys(self._found.values())) or None


class Backoff:
    """Waits that grow from `retry_first` to `retry_most` seconds."""

    def __init__(self, settings: ControlSettings) -> None:
        self.first, self.most = settings.retry_first, settings.retry_most
        self.delay = self.first

    def reset(self) -> None:
        self.delay = self.first

    async def wait(self) -> None:
        await asyncio.sleep(self.delay)
        self.delay = min(2 * self.delay, self.most)


async def persist(where: str, work: Callable[[], Awaitable[None]], trouble: Trouble, backoff: Backoff) -> None:
    """Do what the control plane itself decided, again and again while the store refuses."""
    while True:
        try:
            await work()
        except StoreError as error:
            trouble.begin(where, str(error))
            await backoff.wait()
        else:
            trouble.end(where)
            return
