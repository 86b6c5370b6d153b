# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The stages' pools and gauges.

INIT, RUNNING and POSTRUN have their own bounded pools, so that neither a slow sandbox start nor a slow test suite takes
a running slot. Between INIT and RUNNING lies the READY buffer: `rooms` bounds running and ready sessions together, and
a session keeps its room until POSTRUN takes it, so that a slow POSTRUN holds back INIT rather than piling up sandboxes.
Evaluators' own sandboxes are made in a pool besides, while the harness runs; they take no place of a session.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from enum import StrEnum

from nemo_gym_polar.rollouts.pool import Pool, Usage
from nemo_gym_polar.rollouts.settings import RolloutSettings


class Stage(StrEnum):
    QUEUED = "queued"
    INIT = "init"
    READY = "ready"
    RUNNING = "running"
    FINISHED = "finished"
    """The harness has ended; POSTRUN has no free place yet."""
    POSTRUN = "postrun"


Gauges = dict[Stage, int]


class Pools:
    """Shared by all sessions of a service. `on_change` sees the number of sessions in each stage, `on_left` the times
    of each session that left for good."""

    def __init__(self, settings: RolloutSettings, on_change: Callable[[Gauges], None] | None = None) -> None:
        self.init = Pool(settings.init_workers)
        self.rooms = Pool(settings.run_workers + settings.ready_buffer)
        self.run = Pool(settings.run_workers)
        self.postrun = Pool(settings.postrun_workers)
        self.prewarm = Pool(settings.prewarm_workers)
        self.gauges: Gauges = dict.fromkeys(Stage, 0)
        self.on_change = on_change
        self.on_left: Callable[[dict[str, float]], None] | None = None

    @property
    def usage(self) -> dict[str, Usage]:
        """Each pool's places and its queue. `rooms` are those of ready and running sessions together."""
        names = ("init", "rooms", "run", "postrun", "prewarm")
        return {name: getattr(self, name).usage for name in names}

    def change(self, left: Stage | None, entered: Stage | None) -> None:
        if left:
            self.gauges[left] -= 1
        if entered:
            self.gauges[entered] += 1
        if self.on_change:
            self.on_change(dict(self.gauges))


class Track:
    """One session's way through the stages, and the seconds it spent in each. `on_stage` is told of each one."""

    def __init__(self, pools: Pools, on_stage: Callable[[Stage], None] | None = None) -> None:
        self.pools = pools
        self.on_stage = on_stage
        self.stage: Stage | None = None
        self.since = 0.0
        self.seconds: dict[str, float] = {}

    def move(self, stage: Stage | None) -> None:
        """Enter a stage; None leaves for good."""
        left, now = self.stage, time.monotonic()
        if left:
            self.add(left, now - self.since)
        self.stage, self.since = stage, now
        if left is not stage:
            self.pools.change(left, stage)
            if stage and self.on_stage:
                self.on_stage(stage)
            if stage is None and self.pools.on_left:
                self.pools.on_left(self.seconds)

    @contextlib.contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Count the seconds of a part of a stage, also if it fails."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(name, time.monotonic() - began)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
