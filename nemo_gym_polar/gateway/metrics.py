# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a gateway counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from nemo_gym_polar.forest.turn import Edge, Turn

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Metrics:
    """One registry per gateway, so that several can live in a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "polar_calls", "Answers by dialect and status.", ["dialect", "status"], registry=self.registry
        )
        self.turns = Counter("polar_turns", "Turns by edge and cause.", ["edge", "cause"], registry=self.registry)
        self.sampled = Counter("polar_sampled_tokens", "Tokens that the engine sampled.", registry=self.registry)
        self.context = Counter("polar_context_tokens", "Tokens that the policy read.", registry=self.registry)
        self.reread = Counter(
            "polar_reread_tokens",
            "Tokens that the policy read anew because a conversation went on, but not from its tokens, by cause.",
            ["cause"],
            registry=self.registry,
        )
        self.faults = Counter("polar_engine_faults", "Engine failures by fault.", ["fault"], registry=self.registry)
        self.helped = Counter(
            "polar_helper_calls", "Calls that asked for a helper model.", ["alias"], registry=self.registry
        )
        self.unseen = Counter("polar_unseen_turns", "Turns that the harness did not wait for.", registry=self.registry)
        self.aborted = Counter(
            "polar_aborted_calls", "Generations that were cut off, by cause.", ["cause"], registry=self.registry
        )
        self.broken = Counter(
            "polar_broken_streams", "Streams that were reset after their headers.", registry=self.registry
        )
        self.budgets = Counter(
            "polar_budget_refusals",
            "Calls that a session's budget did not allow, by budget and by what the harness was told.",
            ["budget", "told"],
            registry=self.registry,
        )
        self.exhausted = Counter(
            "polar_exhausted_sessions",
            "Sessions that ran out of a budget, by the first one.",
            ["budget"],
            registry=self.registry,
        )
        self.sessions = Gauge("polar_open_sessions", "Sessions that are open.", registry=self.registry)
        self.seconds = Histogram("polar_call_seconds", "Seconds per call.", buckets=_SECONDS, registry=self.registry)
        self.engine_seconds = Histogram(
            "polar_engine_seconds",
            "Seconds per generation: rendering, the engine's work, parsing.",
            buckets=_SECONDS,
            registry=self.registry,
        )

    def count_turn(self, turn: Turn) -> None:
        self.turns.labels(turn.edge.value, turn.cause.value if turn.cause else "").inc()
        self.sampled.inc(len(turn.sampled))
        self.context.inc(turn.context_length)
        if turn.edge is Edge.ROOT and turn.cause is not None:
            self.reread.labels(turn.cause.value).inc(len(turn.delta))

    def count_exhausted(self, budget: str, told: str, *, first: bool) -> None:
        self.budgets.labels(budget, told).inc()
        if first:
            self.exhausted.labels(budget).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)
