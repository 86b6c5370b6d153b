# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node as the control plane sees it: its last answer, and what is under way to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

from nemo_gym_polar.rollouts.control.records import NodeRecord
from nemo_gym_polar.rollouts.nodes.base import Load, Node, NodeError

READY = "ready"
DRAINING = "draining"
LOST = "lost"


class Member:
    """`attached` once all that the node knows has been compared with the store."""

    def __init__(self, node: Node, kind: str, url: str | None, metadata: dict[str, Any], call_timeout: float) -> None:
        self.node = node
        self.kind = kind
        self.url = url
        self.metadata = metadata
        self.call_timeout = call_timeout
        self.load = Load(capacity=0, sessions=0)
        self.attached = False
        self.lost = False
        self.draining = False
        self.busy = False  # it refused a session; no more until its next load
        self.cursor = 0
        self.seen = time.time()
        self.answered = time.monotonic()
        self.starting: set[str] = set()
        self.unstored = 0  # results that it has and nobody has kept yet
        self.task: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self.node.id

    async def call[T](self, work: Awaitable[T], seconds: float = 0.0) -> T:
        """What the node answers; no answer in time is a `NodeError`."""
        limit = seconds + self.call_timeout
        try:
            async with asyncio.timeout(limit):
                answer = await work
        except TimeoutError:
            raise NodeError(f"node {self.id} gave no answer for {limit:.0f} s") from None
        except OSError as error:
            raise NodeError(f"node {self.id}: {error}") from error
        self.seen, self.answered = time.time(), time.monotonic()
        return answer

    @property
    def state(self) -> str:
        if self.lost:
            return LOST
        return DRAINING if self.draining or self.load.draining else READY

    def free(self, own: int, max_pressure: float) -> int:
        """Places for new sessions, where `own` are known to be there or on their way."""
        if not self.attached or self.lost or self.busy or self.state == DRAINING:
            return 0
        if self.load.pressure is not None and self.load.pressure > max_pressure:
            return 0
        return max(0, self.load.capacity - max(own, self.load.sessions))

    def record(self) -> NodeRecord:
        return NodeRecord(
            node_id=self.id,
            kind=self.kind,
            url=self.url,
            state=self.state,
            seen=self.seen,
            capacity=self.load.capacity,
            sessions=self.load.sessions,
            stages=dict(self.load.stages),
            pressure=self.load.pressure,
            paused=self.load.paused,
            policy_version=self.load.policy_version,
            metadata=self.metadata,
        )
