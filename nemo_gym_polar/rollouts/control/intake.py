# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Takes what a node reports into the store, results first."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from nemo_gym_polar.rollouts.control.ledger import Ledger, event
from nemo_gym_polar.rollouts.control.records import SessionRecord
from nemo_gym_polar.rollouts.control.settle import is_usable
from nemo_gym_polar.rollouts.nodes.base import Report
from nemo_gym_polar.rollouts.results import summary, write_result
from nemo_gym_polar.rollouts.task import SessionResult

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Taken:
    """`stored`: the node may forget them. `strangers`: sessions that nobody waits for. `cancel`: what follows."""

    stored: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    cancel: Sequence[SessionRecord] = ()


class Intake:
    def __init__(self, ledger: Ledger, directory: Path, lock: asyncio.Lock) -> None:
        self.ledger = ledger
        self.directory = directory
        self.lock = lock
        self.unstored: set[str] = set()
        self.trouble: str | None = None

    def refused(self, error: str) -> None:
        if self.trouble != error:
            logger.error("%s", error)
        self.trouble = error

    async def take(self, node_id: str, reports: Sequence[Report]) -> Taken:
        """Raises `RolloutError` or `StoreError` if something can't be kept; nothing is to be acknowledged then."""
        results = {report.session_id: report.result for report in reports if report.result is not None}
        self.unstored |= results.keys()
        known = await self._known(reports)
        for session_id, result in results.items():
            record = known.get(session_id)
            if record is not None and record.result is None:
                await asyncio.to_thread(write_result, self.directory, result)
        async with self.lock:
            taken = await self._store(node_id, reports, known)
        self.unstored -= results.keys()
        if not self.unstored:
            self.trouble = None
        return taken

    async def _known(self, reports: Sequence[Report]) -> dict[str, SessionRecord]:
        found = {}
        for report in reports:
            name = report.session_id
            record = self.ledger.live.get(name) or await self.ledger.store.session(name)
            if record is not None:
                found[name] = record
        return found

    async def _store(self, node_id: str, reports: Sequence[Report], known: dict[str, SessionRecord]) -> Taken:
        taken, changed, told = Taken(), [], []
        for report in reports:
            name = report.session_id
            live = self.ledger.live.get(name)
            if live is not None and live.node_id == node_id:
                if (live.status, live.result) != (report.status, report.result):
                    changed.append(reported(live, report))
            elif report.result is None:
                taken.strangers.append(name)
                continue
            elif (record := await self._late(name, known)) is not None:
                changed.append(record.model_copy(update=kept(report.result)))
                told.append(late_event(record, report.result))
            if report.status.final:
                taken.stored.append(name)
        if changed:
            taken.cancel = await self.ledger.commit(changed, events=told)
        return taken

    async def _late(self, name: str, known: dict[str, SessionRecord]) -> SessionRecord | None:
        """A session that was given up, whose result came after all and is not kept yet."""
        record = await self.ledger.store.session(name) if name in known else None
        return record if record and record.lost and record.result is None else None


def reported(record: SessionRecord, report: Report) -> SessionRecord:
    update: dict[str, Any] = {"status": report.status, "updated": time.time()}
    if report.result is not None:
        result = report.result
        update |= {"error": result.error, "usable": is_usable(result), **kept(result)}
    return record.model_copy(update=update)


def kept(result: SessionResult) -> dict[str, Any]:
    """What a record keeps of a result, whether it counts or not."""
    path = f"traces/{result.session_id}.jsonl" if result.traces else None
    return {"reward": result.reward, "result": orjson.loads(summary(result)), "result_path": path}


def late_event(record: SessionRecord, result: SessionResult) -> Any:
    data = {"status": str(result.status), "reward": result.reward, "lost": record.lost}
    return event("session.late_result", task_id=record.task_id, session_id=record.session_id, data=data)
