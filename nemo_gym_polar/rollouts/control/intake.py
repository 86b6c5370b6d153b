# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Takes what a node reports into the store, results first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from nemo_gym_polar.rollouts.control.ledger import Change, Ledger
from nemo_gym_polar.rollouts.control.loss import after_loss
from nemo_gym_polar.rollouts.control.news import late_event
from nemo_gym_polar.rollouts.control.records import SessionRecord
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.control.settle import is_usable
from nemo_gym_polar.rollouts.nodes.base import Report
from nemo_gym_polar.rollouts.results import summary, without_details, write_result
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus


@dataclass(slots=True)
class Taken:
    """`stored`: the node may forget them. `strangers`: it runs them, and nobody waits for them. `cancel`: sessions that
    are to end because of what was reported."""

    stored: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    cancel: Sequence[SessionRecord] = ()


class Intake:
    def __init__(self, ledger: Ledger, settings: ControlSettings) -> None:
        self.ledger = ledger
        self.settings = settings

    async def take(self, node_id: str, reports: Sequence[Report]) -> Taken:
        """Raises `RolloutError` or `StoreError` if something can't be kept; nothing is to be acknowledged then."""
        results = {report.session_id: result for report in reports if (result := self._result(report)) is not None}
        wanted = [result for name, result in results.items() if await self._is_wanted(name)]
        results_kept = await asyncio.gather(*(asyncio.to_thread(self._write, result) for result in wanted))
        written = {result.session_id: result for result in results_kept}
        async with self.ledger.turn():
            return await self._store(node_id, reports, written)

    def _result(self, report: Report) -> SessionResult | None:
        """Under the id that it was reported with: a result names files, and a node could write anything into it."""
        live = self.ledger.live.get(report.session_id)
        if report.result is not None:
            return report.result.model_copy(update={"session_id": report.session_id})
        if not report.status.final or live is None:
            return None
        error = f"node {live.node_id} reported {report.status} without a result"
        return SessionResult(
            session_id=live.session_id,
            task_id=live.task_id,
            sample=live.sample,
            status=SessionStatus.ERROR,
            error=error,
        )

    async def _is_wanted(self, session_id: str) -> bool:
        """Whether a result is one that is kept, and not yet."""
        return session_id in self.ledger.live or await self._lost(session_id) is not None

    async def _lost(self, session_id: str) -> SessionRecord | None:
        """A session that was given up, and has left no result so far."""
        record = await self.ledger.store.session(session_id)
        return record if record and record.lost and record.result is None else None

    def _write(self, result: SessionResult) -> SessionResult:
        """On disk; what was written. Details that are no JSON must not cost the tokens."""
        try:
            write_result(self.settings.directory, result)
        except (TypeError, ValueError) as error:
            result = without_details(result, error)
            write_result(self.settings.directory, result)
        return result

    async def _store(self, node_id: str, reports: Sequence[Report], written: Mapping[str, SessionResult]) -> Taken:
        taken, sessions, replacements, told = Taken(), [], [], []
        for report in reports:
            live = self.ledger.live.get(report.session_id)
            result = written.get(report.session_id)
            if live and live.node_id == node_id:
                if report.status.final and result is None:
                    continue  # it became ours while results were written; the next answer has it again
                changed, replacement = self._outcome(live, report, result)
                sessions += [changed] if changed != live else []
                replacements += [replacement] if replacement else []
            elif not report.status.final:
                taken.strangers.append(report.session_id)
            elif result is not None and (lost := await self._lost(report.session_id)):
                sessions.append(lost.model_copy(update=kept(result)))
                told.append(late_event(sessions[-1]))
            if report.status.final:
                taken.stored.append(report.session_id)
        if sessions:
            change = Change(sessions=sessions, new_sessions=replacements, events=told)
            taken.cancel = await self.ledger.commit(change)
        return taken

    def _outcome(
        self, live: SessionRecord, report: Report, result: SessionResult | None
    ) -> tuple[SessionRecord, SessionRecord | None]:
        """The session after a report. One that was cancelled by somebody else is lost like one whose node is."""
        if result is None:
            if live.status is report.status:
                return live, None
            return live.model_copy(update={"status": report.status, "updated": time.time()}), None
        if report.status is SessionStatus.CANCELLED and not live.cancelling:
            lost, replacement = after_loss(live, f"node {live.node_id} ended it", self.settings)
            return lost.model_copy(update=kept(result)), replacement
        update = {"status": result.status, "error": result.error, "usable": is_usable(result), "updated": time.time()}
        return live.model_copy(update={**update, **kept(result)}), None


def kept(result: SessionResult) -> dict[str, Any]:
    """What a record keeps of a result, whether it counts or not."""
    path = f"traces/{result.session_id}.jsonl" if result.traces else None
    told = {"reward": result.reward, "first_prompt": result.first_prompt}
    return {**told, "result": orjson.loads(summary(result)), "result_path": path}
