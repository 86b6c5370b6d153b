# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Follows what nodes report, compares them with the store, and notices their loss.

Invariant: a result is on disk and in the store before its node is told to forget it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from functools import partial

from nemo_gym_polar.rollouts.control.intake import Intake
from nemo_gym_polar.rollouts.control.ledger import Change
from nemo_gym_polar.rollouts.control.loss import after_loss
from nemo_gym_polar.rollouts.control.member import Member
from nemo_gym_polar.rollouts.control.news import event
from nemo_gym_polar.rollouts.control.placing import Placing
from nemo_gym_polar.rollouts.control.records import SessionRecord
from nemo_gym_polar.rollouts.control.roster import Roster
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import NodeError, NodeLostError, Report
from nemo_gym_polar.rollouts.store.errors import StoreError

logger = logging.getLogger(__name__)


class Following:
    def __init__(self, roster: Roster, placing: Placing) -> None:
        self.roster = roster
        self.ledger = roster.ledger
        self.settings = roster.settings
        self.placing = placing
        self.intake = Intake(roster.ledger, roster.settings)

    async def forever(self, member: Member) -> None:
        """Until the node is lost for good. One that is only silent is asked on; it may come back."""
        backoff = self.roster.backoff()
        while True:
            try:
                await self._ask(member)
            except NodeLostError as error:
                return await self.lose(member, f"node {member.id} is lost: {error}")
            except NodeError as error:
                await self._doubt(member, str(error))
            except (StoreError, RolloutError) as error:  # a full disk, most likely; the node keeps the results
                self.roster.trouble.begin(results_of(member), str(error))
            else:
                self.roster.trouble.end(results_of(member))
                backoff.reset()
                continue
            await backoff.wait()

    async def _ask(self, member: Member) -> None:
        if not member.attached:
            member.load = await member.call(member.node.load())
            await self._inform(member)
            await self._attach(member)
            return
        wait, asked = self.settings.report_wait, time.monotonic()
        reports = await member.call(member.node.reports(member.cursor, wait), wait)
        if not reports and time.monotonic() - asked < wait / 2:
            await asyncio.sleep(self.settings.retry_first)  # a node that doesn't wait must not be asked all the time
        await self._take(member, reports)
        member.load, member.busy = await member.call(member.node.load()), False
        if member.load.sessions < len(self._expected(member)):
            await self._compare(member)
        self.roster.wake.set()

    async def _attach(self, member: Member) -> None:
        """Marked before it is done: if the memory is read again meanwhile, the mark goes and all is compared again."""
        member.attached = True
        try:
            await self._compare(member)
        except BaseException:
            member.attached = False
            raise
        member.lost = False
        self.roster.wake.set()

    async def _inform(self, member: Member) -> None:
        """A node that comes late must not sample while the weights are replaced, nor name weights of before, nor stay
        paused when the others go on."""
        weights, paused = self.roster.weights, member.load.paused
        if weights.paused:
            seconds = self.settings.call_timeout
            await member.call(member.node.pause(seconds), seconds)
            paused = True
        late = weights.version is not None and weights.version != member.load.policy_version
        if weights.paused is False and (paused or late):  # it may have been resumed while this node was being paused
            await member.call(member.node.resume(weights.version))

    # What a node has, and what it should have

    async def _compare(self, member: Member) -> None:
        """With all that it has to report; what is missing there is given up."""
        expected = self._expected(member)
        reports = await member.call(member.node.reports(0, 0.0))
        member.cursor = 0  # the node may have begun to count anew
        await self._take(member, reports)
        missing = expected - {report.session_id for report in reports}
        if missing:
            await self._give_up(member.id, f"node {member.id} does not have it any more", missing)
        self.placing.cancel(record for record in self.ledger.at(member.id) if record.cancelling)

    def _expected(self, member: Member) -> set[str]:
        return {record.session_id for record in self.ledger.at(member.id)} - member.starting

    async def _take(self, member: Member, reports: Sequence[Report]) -> None:
        if not reports:
            return
        member.unstored = sum(report.result is not None for report in reports)
        taken = await self.intake.take(member.id, reports)
        member.unstored = 0
        self.placing.cancel(taken.cancel)
        for session_id in taken.strangers:
            await member.call(member.node.cancel(session_id))
        if taken.stored:
            await member.call(member.node.acknowledge(taken.stored))
        member.cursor = reports[-1].cursor

    # Loss

    async def _doubt(self, member: Member, error: str) -> None:
        silent = time.monotonic() - member.answered
        if silent >= self.settings.node_timeout and not member.lost:
            self._is_lost(member)
            await self.give_up(member.id, f"node {member.id} gave no answer for {silent:.0f} s: {error}")

    async def lose(self, member: Member, reason: str) -> None:
        """For good: it is forgotten."""
        self._is_lost(member)
        if self.roster.members.get(member.id) is member:
            del self.roster.members[member.id]
        await self.give_up(member.id, reason)

    def _is_lost(self, member: Member) -> None:
        member.lost, member.attached, member.unstored = True, False, 0
        self.roster.trouble.end(results_of(member))

    async def give_up(self, node_id: str, reason: str) -> None:
        """All that the node had."""
        logger.warning("%s", reason)
        await self._give_up(node_id, reason, None)

    async def _give_up(self, node_id: str, reason: str, session_ids: set[str] | None) -> None:
        await self.roster.persist(partial(self.replace, node_id, reason, session_ids))
        self.roster.wake.set()

    async def replace(self, node_id: str, reason: str, session_ids: set[str] | None = None) -> None:
        """By the rule for lost sessions: of these, or of all that the node had."""
        async with self.ledger.turn():
            lost = [r for r in self.ledger.at(node_id) if session_ids is None or r.session_id in session_ids]
            outcomes = [after_loss(record, reason, self.settings) for record in lost]
            change = Change(
                sessions=[given_up for given_up, _ in outcomes],
                new_sessions=[replacement for _, replacement in outcomes if replacement],
                events=[] if session_ids else [event("node.lost", node_id=node_id, data={"reason": reason})],
            )
            self.placing.cancel(await self.ledger.commit(change))

    async def forget(self, member: Member, records: Sequence[SessionRecord]) -> None:
        """End sessions that were given up, if their node still answers."""
        with contextlib.suppress(NodeError):
            for record in records:
                await member.call(member.node.cancel(record.session_id))


def results_of(member: Member) -> str:
    """Where a trouble with them arises."""
    return f"the results of node {member.id}"
