# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a gateway counts, for Prometheus. docs/operations.md says what each name means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from nemo_gym_polar.engines.base import ReplicaState
from nemo_gym_polar.forest.committer import Commit
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.turn import Edge, Turn

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
_SYNC_SECONDS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)


class Family:
    """A counter with labels. prometheus-client takes a lock to find a child; a call has no time for that."""

    def __init__(self, registry: CollectorRegistry, name: str, said: str, *labels: str) -> None:
        self._counter = Counter(name, said, labels, registry=registry)
        self._children: dict[tuple[str | int, ...], Counter] = {}

    def count(self, *values: str | int, by: float = 1) -> None:
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self._counter.labels(*values)
        child.inc(by)


class Metrics:
    """One registry per gateway, so that several can live in a process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def family(name: str, said: str, *labels: str) -> Family:
            return Family(registry, name, said, *labels)

        def counter(name: str, said: str) -> Counter:
            return Counter(name, said, registry=registry)

        def histogram(name: str, said: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(name, said, buckets=buckets, registry=registry)

        # Calls
        self.calls = family("polar_calls", "Answers by dialect and status.", "dialect", "status")
        self.seconds = histogram("polar_call_seconds", "Seconds per call.", _SECONDS)
        self.aborted = family("polar_aborted_calls", "Generations that were cut off, by cause.", "cause")
        self.broken = counter("polar_broken_streams", "Streams that were reset after their headers.")
        self.helped = family("polar_helper_calls", "Calls that asked for a helper model.", "alias")
        # Sessions
        self.opened = counter("polar_sessions", "Sessions that were opened.")
        self.budgets = family(
            "polar_budget_refusals", "Calls beyond a session's budget, and what was told.", "budget", "told"
        )
        self.exhausted = family(
            "polar_exhausted_sessions", "Sessions that ran out of a budget, by the first.", "budget"
        )
        # Turns and tokens
        self.turns = family("polar_turns", "Turns by edge and cause.", "edge", "cause")
        self.drifts = family("polar_drifts", "Answers that a harness repeated with a harmless change.", "cause")
        self.flagged = family("polar_flagged_turns", "Turns that are never trained on, by flag.", "flag")
        self.settled = family("polar_settled_turns", "Turns of finished sessions, by what became of them.", "status")
        self.unseen = counter("polar_unseen_turns", "Turns that the harness did not wait for.")
        self.sampled = counter("polar_sampled_tokens", "Tokens that the engine sampled.")
        self.context = counter("polar_context_tokens", "Tokens that the policy read.")
        self.reread = family(
            "polar_reread_tokens",
            "Tokens that the policy read anew because a conversation went on, but not from its tokens, by cause.",
            "cause",
        )
        # Engine
        self.engine_seconds = histogram(
            "polar_engine_seconds", "Seconds per generation: rendering, the engine's work, parsing.", _SECONDS
        )
        self.faults = family("polar_engine_faults", "Engine failures by fault.", "fault")
        self.updates = counter("polar_weight_updates", "Weights that were announced.")
        # Journal
        self.journal_seconds = histogram(
            "polar_journal_commit_seconds", "Seconds to write and sync a commit.", _SYNC_SECONDS
        )
        self.journal_bytes = counter("polar_journal_bytes", "Bytes made durable.")
        self.journal_failures = counter("polar_journal_failures", "Records that could not be made durable.")

    def watch(self, name: str, said: str, value: Callable[[], float]) -> None:
        """A gauge that is read when it is asked for."""
        Gauge(name, said, registry=self.registry).set_function(value)

    def watch_engine(self, replicas: Callable[[], Sequence[ReplicaState]]) -> None:
        self.registry.register(_Replicas(replicas))

    def count_turn(self, turn: Turn) -> None:
        self.turns.count(turn.edge, turn.cause or "")
        self.sampled.inc(len(turn.sampled))
        self.context.inc(turn.context_length)
        if turn.edge is Edge.ROOT and turn.cause is not None:
            self.reread.count(turn.cause, by=len(turn.delta))
        if turn.drift is not None:
            self.drifts.count(turn.drift)
        for flag in turn.flags:
            self.flagged.count(flag)

    def count_exhausted(self, budget: str, told: str, *, first: bool) -> None:
        self.budgets.count(budget, told)
        if first:
            self.exhausted.count(budget)

    def count_finished(self, forest: Forest) -> None:
        for turn in forest.turns:
            self.settled.count(turn.status)

    def count_commit(self, commit: Commit) -> None:
        """In the journal's thread."""
        self.journal_seconds.observe(commit.seconds)
        self.journal_bytes.inc(commit.written)
        self.journal_failures.inc(commit.failed)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Replicas(Collector):
    """The engine's copies at the moment of the question."""

    def __init__(self, replicas: Callable[[], Sequence[ReplicaState]]) -> None:
        self._replicas = replicas

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("polar_engine_replica_up", "Whether it answered when asked last.", labels=["replica"])
        failures = CounterMetricFamily(
            "polar_engine_replica_failures", "Calls that it did not answer, which went to another.", labels=["replica"]
        )
        for replica in self._replicas():
            up.add_metric([replica.url], float(replica.up))
            failures.add_metric([replica.url], replica.failures)
        return up, failures
