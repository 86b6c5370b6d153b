# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes that the control plane has, those that it had before it was restarted, and what they are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from nemo_gym_polar.rollouts.control.errors import UnknownNodeError
from nemo_gym_polar.rollouts.control.following import Following
from nemo_gym_polar.rollouts.control.member import DRAINING, LOST, Member
from nemo_gym_polar.rollouts.control.news import event
from nemo_gym_polar.rollouts.control.records import EventRecord, NodeRecord
from nemo_gym_polar.rollouts.control.roster import Roster
from nemo_gym_polar.rollouts.nodes.base import Node, NodeError
from nemo_gym_polar.rollouts.store.batch import Batch

logger = logging.getLogger(__name__)

LOCAL = "local"  # the kind of a node that lives in the service's own process, and dies with it
Connect = Callable[[NodeRecord], Awaitable[Node | None]]


class Fleet:
    def __init__(self, roster: Roster, following: Following, connect: Connect | None) -> None:
        self.roster = roster
        self.store = roster.ledger.store
        self.ledger = roster.ledger
        self.settings = roster.settings
        self.following = following
        self.connect = connect
        self._absent: dict[str, NodeRecord] = {}  # nodes of before that have not come back yet
        self._changing = asyncio.Lock()  # whoever adds a node or forgets one

    async def recover(self) -> None:
        """Give up what ended with the service before, and look for the nodes that live on."""
        known = {record.node_id: record for record in await self.store.nodes()}
        gone = {name for name in {*known, *self.ledger.placed} if name not in known or known[name].kind == LOCAL}
        self._absent = {name: record for name, record in known.items() if name not in gone}
        for node_id in sorted(gone):
            await self.following.replace(node_id, f"node {node_id} ended with the service")
        await self.store.write(Batch(gone_nodes=sorted(gone)))
        for record in self._absent.values():
            self.roster.spawn(self._regain(record))

    async def _regain(self, record: NodeRecord) -> None:
        """A node of before: found again, or lost if it doesn't come in time."""
        node = await self._connected(record)
        if node is not None:
            return await self.roster.persist(partial(self._add_again, node, record))
        await asyncio.sleep(self.settings.node_timeout)
        if self._absent.pop(record.node_id, None):
            await self.following.give_up(record.node_id, f"node {record.node_id} did not come back")
            await self.roster.persist(partial(self._forget, record.node_id))
        return None

    async def _add_again(self, node: Node, record: NodeRecord) -> None:
        if record.node_id in self._absent:  # it has not come by itself meanwhile
            await self.add(node, kind=record.kind, url=record.url, metadata=record.metadata)

    async def _connected(self, record: NodeRecord) -> Node | None:
        try:
            return await self.connect(record) if self.connect else None
        except (NodeError, OSError) as error:
            logger.warning("node %s can't be reached: %s", record.node_id, error)
            return None

    async def _forget(self, node_id: str, *told: EventRecord) -> None:
        """Unless it has come back meanwhile."""
        async with self._changing:
            gone = [] if node_id in self.roster.members else [node_id]
            await self.store.write(Batch(gone_nodes=gone, events=list(told)))

    async def add(
        self, node: Node, *, kind: str, url: str | None = None, metadata: dict[str, Any] | None = None
    ) -> NodeRecord:
        """Follow a node. One with the id of a known node takes that one's place, and its sessions where it has them."""
        member = Member(node, kind, url, metadata or {}, self.settings.call_timeout)
        async with self._changing:
            before = self._absent.get(node.id)
            member.draining = before is not None and before.state == DRAINING
            await self.store.write(Batch(nodes=[member.record()], events=[event("node.added", node_id=node.id)]))
            self._absent.pop(node.id, None)
            self._follow(member)
        return member.record()

    def _follow(self, member: Member) -> None:
        known = self.roster.members.get(member.id)
        if known and known.task:
            known.task.cancel()
            member.starting = known.starting
        self.roster.members[member.id] = member
        member.task = self.roster.spawn(self.following.forever(member))

    def records(self) -> list[NodeRecord]:
        """Those of before that have not come back yet are there as lost."""
        absent = [record.model_copy(update={"state": LOST}) for record in self._absent.values()]
        found = [*absent, *(member.record() for member in self.roster.members.values())]
        return sorted(found, key=lambda record: record.node_id)

    async def drain(self, node_id: str) -> NodeRecord:
        """The node takes no more sessions. Raises `NodeError` if it can't be told; it gets none all the same."""
        if node_id in self._absent:
            return await self._drain_absent(self._absent[node_id])
        member = self._member(node_id)
        member.draining = True
        await member.call(member.node.drain())
        await self.store.write(Batch(nodes=[member.record()], events=[event("node.draining", node_id=node_id)]))
        return member.record()

    async def _drain_absent(self, record: NodeRecord) -> NodeRecord:
        """For when it comes back."""
        draining = record.model_copy(update={"state": DRAINING})
        await self.store.write(Batch(nodes=[draining], events=[event("node.draining", node_id=record.node_id)]))
        if record.node_id in self._absent:
            self._absent[record.node_id] = draining
        return draining

    async def remove(self, node_id: str) -> None:
        """Forget a node; sessions that it still has are given up, as if it were lost."""
        reason = f"node {node_id} was removed"
        if self._absent.pop(node_id, None):
            await self.following.give_up(node_id, reason)
        else:
            await self._lose(self._member(node_id), reason)
        await self._forget(node_id, event("node.removed", node_id=node_id))

    async def _lose(self, member: Member, reason: str) -> None:
        if member.task:
            member.task.cancel()
        there = self.ledger.at(member.id)
        await self.following.lose(member, reason)
        self.roster.spawn(self.following.forget(member, there))

    def _member(self, node_id: str) -> Member:
        try:
            return self.roster.members[node_id]
        except KeyError:
            raise UnknownNodeError(f"there is no node {node_id!r}") from None

    async def pause(self, seconds: float) -> None:
        """Hold back generations on every node until none is in flight. Raises `NodeError` naming those that refused;
        the others stay paused, and so does a node that comes before `resume`."""
        self.roster.weights.paused = True
        refuse(await self._everywhere(lambda node: node.pause(seconds), seconds))

    async def resume(self, policy_version: str | None = None) -> None:
        """Generate again on every node, with weights of this version from here on. Raises `NodeError` naming those that
        could not be told; they are told when they answer again."""
        weights = self.roster.weights
        weights.paused, weights.version = False, policy_version or weights.version
        failed = await self._everywhere(lambda node: node.resume(policy_version), 0.0)
        for member in failed:
            member.attached = False
        refuse(failed)

    async def _everywhere(self, work: Callable[[Node], Awaitable[None]], seconds: float) -> dict[Member, BaseException]:
        """Those that refused."""
        members = [member for member in self.roster.members.values() if not member.lost]
        calls = [member.call(work(member.node), seconds) for member in members]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        return {member: error for member, error in zip(members, answers, strict=True) if error}


def refuse(failed: Mapping[Member, BaseException]) -> None:
    if failed:
        raise NodeError("; ".join(f"{member.id}: {error}" for member, error in failed.items()))
