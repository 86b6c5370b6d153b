# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How fast the store is, and what was written into it, for Prometheus."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from nemo_gym_polar.rollouts.control.records import EventRecord

BUCKETS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
WORK = ("read", "write")
EXPECTED = (
    *("task.submitted", "task.completed", "task.failed", "task.cancelled"),
    *("session.placed", "session.completed", "session.timeout", "session.error", "session.cancelled"),
    *("session.late_result", "node.added", "node.lost"),
)  # told as 0 until they happen: what was never there can't be seen to grow


class Measures(Collector):
    """Since the service was started."""

    def __init__(self) -> None:
        self.seconds = Histogram(
            "polar_service_store_seconds", "Seconds per transaction.", ["work"], buckets=BUCKETS, registry=None
        )
        self.failures = Counter(
            "polar_service_store_failures", "Transactions that the store refused.", ["work"], registry=None
        )
        self.events = Counter("polar_service_events", "What happened, by kind of event.", ["kind"], registry=None)
        self.mismatches = Counter(
            "polar_service_first_prompt_mismatches",
            "Samples that began with another prompt than their group.",
            registry=None,
        )
        for work in WORK:
            self.seconds.labels(work)
            self.failures.labels(work)
        for kind in EXPECTED:
            self.events.labels(kind)

    @contextlib.contextmanager
    def measure(self, work: str) -> Iterator[None]:
        began = time.perf_counter()
        with self.failures.labels(work).count_exceptions():
            yield
        self.seconds.labels(work).observe(time.perf_counter() - began)

    def count(self, events: Iterable[EventRecord]) -> None:
        for event in events:
            self.events.labels(event.kind).inc()
            self.mismatches.inc(len(event.data.get("first_prompt_mismatches", ())))

    def collect(self) -> Iterable[Metric]:
        for one in (self.seconds, self.failures, self.events, self.mismatches):
            yield from one.collect()
