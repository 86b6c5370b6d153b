# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a node has to report, until it is acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from nemo_gym_polar.rollouts.nodes.base import Report
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus

REMEMBERED = 10_000  # sessions that were forgotten, so that a start that comes late doesn't run one again


class Outbox:
    """The last report of each session, in the order in which they changed."""

    def __init__(self) -> None:
        self._reports: dict[str, Report] = {}
        self._forgotten: dict[str, None] = {}
        self._cursor = 0
        self._changed = asyncio.Event()

    def put(self, session_id: str, status: SessionStatus, result: SessionResult | None = None) -> None:
        self._cursor += 1
        self._reports.pop(session_id, None)  # so that it comes last again
        self._reports[session_id] = Report(self._cursor, session_id, status, result)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def after(self, cursor: int, wait: float) -> list[Report]:
        """Waits up to `wait` seconds for one."""
        found = self._later(cursor)
        if not found and wait > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            found = self._later(cursor)
        return found

    def _later(self, cursor: int) -> list[Report]:
        return [report for report in self._reports.values() if report.cursor > cursor]

    def forget(self, session_ids: Iterable[str]) -> None:
        for name in session_ids:
            report = self._reports.get(name)
            if report is not None and report.status.final:
                del self._reports[name]
                self._forgotten[name] = None
        while len(self._forgotten) > REMEMBERED:
            del self._forgotten[next(iter(self._forgotten))]

    def __contains__(self, session_id: str) -> bool:
        """Whether a session was ever put here, as far back as is remembered."""
        return session_id in self._reports or session_id in self._forgotten

    def __len__(self) -> int:
        return len(self._reports)
