# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Random submits, cancels, crashes, silences and full disks: every sample ends exactly once all the same."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nemo_gym_polar.rollouts.control.errors import TaskConflictError, UnknownTaskError
from nemo_gym_polar.rollouts.nodes.base import Assignment, NodeError
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.task import EarlyStop, SessionStatus, TaskRequest
from tests.rollouts.control.world import World
from tests.support.simulated_node import SimulatedNode

NAMES = st.sampled_from(["a", "b", "c", "d"])
NUMBER = st.integers(0, 7)


class Anything(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.world = World(Path(self.directory.name))
        self.run(self.world.open())
        self.run(self.world.add_node("local"))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    # Tasks

    @rule(name=NAMES, samples=st.integers(1, 4), stop=st.integers(0, 4), how=st.sampled_from(EarlyStop))
    def submit(self, name: str, samples: int, stop: int, how: EarlyStop) -> None:
        wanted = stop if 0 < stop <= samples else None
        request = TaskRequest(
            task_id=name,
            instruction="Do it.",
            num_samples=samples,
            dispatch_priority=samples,
            early_stop_min_usable_sessions=wanted,
            early_stop=how,
        )
        with contextlib.suppress(StoreError, TaskConflictError):
            self.run(self.world.control.submit(request))
            self.world.submitted.add(name)

    @rule(name=NAMES, register=st.booleans())
    def cancel(self, name: str, register: bool) -> None:
        with contextlib.suppress(StoreError, UnknownTaskError):
            self.run(self.world.control.cancel(name, register_if_missing=register))

    # Sessions

    @rule(number=NUMBER, status=st.sampled_from([SessionStatus.INIT, SessionStatus.RUNNING, SessionStatus.POSTRUN]))
    def advance(self, number: int, status: SessionStatus) -> None:
        for node, work in self.pick(number):
            node.move(work.session_id, status)

    @rule(number=NUMBER, status=st.sampled_from([status for status in SessionStatus if status.final]))
    def finish(self, number: int, status: SessionStatus) -> None:
        for node, work in self.pick(number):
            node.end(work.session_id, status)

    def pick(self, number: int) -> list[tuple[SimulatedNode, Assignment]]:
        """One of those that run, if any does; what the machine may do next must not depend on what runs."""
        running = [(node, work) for node in self.world.nodes.values() for work in node.running.values()]
        return [running[number % len(running)]] if running else []

    # Nodes

    @precondition(lambda self: len(self.world.nodes) < 4)
    @rule(kind=st.sampled_from(["local", "far"]))
    def add_node(self, kind: str) -> None:
        with contextlib.suppress(StoreError):
            self.run(self.world.add_node(kind))

    @precondition(lambda self: self.world.nodes)
    @rule(number=NUMBER, what=st.sampled_from(["silent", "deaf"]), on=st.booleans())
    def disturb(self, number: int, what: str, on: bool) -> None:
        setattr(self.node(number), what, on)

    @precondition(lambda self: self.world.nodes)
    @rule(number=NUMBER)
    def kill_node(self, number: int) -> None:
        node = self.node(number)
        node.dead = True
        self.world.gone.append(self.world.nodes.pop(node.id))

    @precondition(lambda self: self.world.nodes)
    @rule(number=NUMBER)
    def node_forgets_all(self, number: int) -> None:
        """It was started anew, under its old name."""
        node = self.node(number)
        self.world.gone.append(node.left_behind())

    @precondition(lambda self: self.world.nodes)
    @rule(number=NUMBER)
    def drain(self, number: int) -> None:
        node = self.node(number)
        if node.id in self.world.control.roster.members:
            with contextlib.suppress(StoreError, NodeError):
                self.run(self.world.control.drain(node.id))

    @precondition(lambda self: self.world.nodes)
    @rule(number=NUMBER)
    def remove(self, number: int) -> None:
        node = self.node(number)
        self.world.store.full = self.world.store.lossy = False
        if node.id in self.world.control.roster.members:
            self.run(self.world.control.remove(node.id))
        node.dead = True
        self.world.gone.append(self.world.nodes.pop(node.id))

    def node(self, number: int) -> SimulatedNode:
        return list(self.world.nodes.values())[number % len(self.world.nodes)]

    # The service and its disk

    @rule()
    def restart_the_service(self) -> None:
        self.world.store.full = self.world.store.lossy = False
        self.run(self.world.restart())

    @rule(full=st.booleans(), lossy=st.booleans())
    def fill_the_disk(self, full: bool, lossy: bool) -> None:
        self.world.store.full, self.world.store.lossy = full, lossy

    @rule(broken=st.booleans())
    def fill_the_disk_of_results(self, broken: bool) -> None:
        self.world.break_results() if broken else self.world.mend_results()

    @rule(seconds=st.sampled_from([0.0, 0.005, 0.03, 0.08]))
    def let_it_work(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @invariant()
    def what_must_hold(self) -> None:
        self.run(self.world.check())

    def teardown(self) -> None:
        try:
            self.run(self.world.heal())
            self.run(self.world.check_the_end())
        finally:
            self.run(self.world.close())
            self.runner.close()
            self.directory.cleanup()


TestAnything = Anything.TestCase
TestAnything.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
