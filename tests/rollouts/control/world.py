# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A control plane with simulated nodes, in which anything may happen, and what must hold all the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.records import NodeRecord, SessionRecord
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.nodes.base import Node
from nemo_gym_polar.rollouts.task import EarlyStop, SessionStatus
from tests.support.faulty_store import FaultyStore
from tests.support.simulated_node import SimulatedNode

FINAL_EVENTS = {f"session.{status.lower()}" for status in SessionStatus if status.final}


class World:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = f"sqlite:///{directory}/polar.db"
        self.settings = ControlSettings(
            directory=directory,
            node_timeout=0.05,
            report_wait=0.05,
            retry_first=0.002,
            retry_most=0.01,
            max_moves=3,
        )
        self.nodes: dict[str, SimulatedNode] = {}
        self.gone: list[SimulatedNode] = []
        self.made = 0
        self.submitted: set[str] = set()
        self.ended: dict[tuple[str, int], SessionRecord] = {}

    # The service

    async def open(self) -> None:
        self.store = FaultyStore(self.url)
        await self.store.open()
        self.control = Coordinator(self.store, self.settings, self.connect)
        await self.control.__aenter__()

    async def connect(self, record: NodeRecord) -> Node | None:
        return self.nodes.get(record.node_id)

    async def close(self) -> None:
        await self.control.__aexit__(None, None, None)
        await self.store.close()

    async def restart(self) -> None:
        """Nodes of the service's own process end with it, the others go on."""
        await self.close()
        for name in [name for name in self.nodes if name.startswith("local")]:
            self.gone.append(self.nodes.pop(name))
        await self.open()

    async def add_node(self, kind: str) -> None:
        self.made += 1
        node = SimulatedNode(f"{kind}{self.made}", capacity=2)
        self.nodes[node.id] = node
        await self.control.add_node(node, kind=kind)

    async def heal(self) -> None:
        """Nothing is wrong any more, and every session comes to its end."""
        self.store.full = self.store.lossy = False
        self.mend_results()
        for node in self.nodes.values():
            node.silent = node.deaf = False
        await self.add_node("fresh")
        async with asyncio.timeout(60):
            while await self.store.open_tasks():
                for node in self.nodes.values():
                    for name in list(node.running):
                        node.end(name)
                await asyncio.sleep(0.005)

    # Results on disk

    @property
    def results(self) -> Path:
        return self.directory / "sessions"

    def break_results(self) -> None:
        if not self.results.is_file():
            if self.results.exists():
                self.results.rename(self.directory / "away")
            self.results.write_text("in the way")

    def mend_results(self) -> None:
        if self.results.is_file():
            self.results.unlink()
            if (self.directory / "away").exists():
                (self.directory / "away").rename(self.results)

    # What must hold

    async def check(self) -> None:
        async with self.control.ledger.turn():  # what is read stands still
            await self.check_all()

    async def check_all(self) -> None:
        records = [record for task in await self.store.tasks(limit=None) for record in await self.records(task.task_id)]
        self.check_one_live_attempt(records)
        self.check_ends_stay(records)
        await self.check_counters()
        await self.check_acknowledged()
        assert (
            max(Counter(work.session_id for node in self.everywhere for work in node.started).values(), default=1) == 1
        )

    async def records(self, task_id: str) -> list[SessionRecord]:
        return await self.store.sessions(task_id)

    @property
    def everywhere(self) -> list[SimulatedNode]:
        return [*self.nodes.values(), *self.gone]

    def check_one_live_attempt(self, records: list[SessionRecord]) -> None:
        """Of a sample's attempts one is current, and none that was not given up runs besides it."""
        current = Counter((record.task_id, record.sample) for record in records if record.current)
        assert set(current.values()) <= {1}
        given_up = {record.session_id for record in records if record.lost}
        running = [work for node in self.nodes.values() for work in node.running.values()]
        counted = Counter((work.request.task_id, work.sample) for work in running if work.session_id not in given_up)
        assert set(counted.values()) <= {1}

    def check_ends_stay(self, records: list[SessionRecord]) -> None:
        """A sample that has ended has ended so for good; only a late result may be added."""
        final = {(r.task_id, r.sample): r for r in records if r.current and r.status.final}
        for key, record in self.ended.items():
            now = final[key]
            assert (now.session_id, now.status, now.error) == (record.session_id, record.status, record.error)
        self.ended = final

    async def check_counters(self) -> None:
        for task in await self.store.tasks(limit=None):
            current = [record for record in await self.records(task.task_id) if record.current]
            assert len(current) == task.total_sessions
            assert sum(record.status.final for record in current) == task.ended_sessions
            assert sum(record.usable for record in current) == task.usable_sessions
            assert (task.ended is not None) == (task.ended_sessions == task.total_sessions)
            if task.selected_samples is not None and task.request:
                usable = {record.sample for record in current if record.usable}
                assert len(task.selected_samples) == task.request.early_stop_min_usable_sessions
                assert set(task.selected_samples) <= usable
                if task.request.early_stop is EarlyStop.IN_ORDER:
                    assert task.selected_samples == sorted(usable)[: len(task.selected_samples)]

    async def check_acknowledged(self) -> None:
        """What a node was told to forget is kept."""
        for node in self.everywhere:
            for name in node.acknowledged:
                record = await self.store.session(name)
                assert record is not None and record.result is not None and record.status.final

    async def check_the_end(self) -> None:
        """Every sample of every task has ended, and was said to have ended once."""
        await self.check()
        assert await self.store.open_tasks() == []
        assert self.submitted <= {task.task_id for task in await self.store.tasks(limit=None)}
        told: Counter[tuple[str | None, int]] = Counter()
        for event in await self.store.events():
            if event.kind in FINAL_EVENTS and event.data["current"]:
                told[event.task_id, event.data["sample"]] += 1
        assert set(told) == set(self.ended)
        assert set(told.values()) <= {1}
        status = await self.control.status()
        assert (status.queue, status.stages, status.unstored, status.trouble) == ({}, {}, 0, None)
        assert sum(status.sessions.values()) == len(self.ended)
