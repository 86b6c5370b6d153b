# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The service for Prometheus: queue, stages, nodes, callbacks, store. docs/operations.md says what each name means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.member import DRAINING, LOST, READY
from nemo_gym_polar.rollouts.control.records import NodeRecord, TaskState
from nemo_gym_polar.rollouts.store.callbacks import CallbackState, CallbackStore
from nemo_gym_polar.rollouts.store.errors import StoreError
from nemo_gym_polar.rollouts.task import SessionStatus

TYPE = "text/plain; version=0.0.4; charset=utf-8"
LIVE = [status for status in SessionStatus if not status.final]


class Families(list[Metric], Collector):
    """Gauges as they stand."""

    def gauge(self, name: str, said: str, value: float) -> None:
        self.append(GaugeMetricFamily(f"polar_service_{name}", said, value=value))

    def gauges(self, name: str, said: str, label: str, values: Mapping[str, float]) -> None:
        family = GaugeMetricFamily(f"polar_service_{name}", said, labels=[label])
        for key, value in values.items():
            family.add_metric([key], value)
        self.append(family)

    def collect(self) -> Iterable[Metric]:
        return self


def make_router(control: Coordinator) -> APIRouter:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(control.store.measures)
    router = APIRouter(tags=["health"])

    @router.get("/metrics", response_class=Response, responses={200: {"content": {TYPE: {}}}})
    async def metrics() -> Response:
        """Counters since the start, and gauges. What is in memory is told while the store can't be read, too."""
        found = Families()
        service(found, control)
        nodes(found, control.nodes())
        await store(found, control)
        return Response(generate_latest(registry) + generate_latest(found), media_type=TYPE)

    return router


def service(found: Families, control: Coordinator) -> None:
    statuses = Counter(record.status for record in control.ledger.live.values())
    waiting = {str(priority): count for priority, count in control.ledger.queue.by_priority().items()}
    placed = {node: len(there) for node, there in control.ledger.placed.items()}
    members = control.roster.members.values()
    found.gauges("sessions", "Sessions that have not ended, by status.", "status", counted(statuses, LIVE))
    found.gauges("waiting_sessions", "Sessions that wait for a node, by priority.", "priority", waiting)
    found.gauges("placed_sessions", "Sessions that a node was given and has not ended.", "node", placed)
    found.gauge("unstored_results", "Results that wait at their nodes.", sum(member.unstored for member in members))
    found.gauge("trouble", "1 while something keeps the service from its work.", bool(control.roster.trouble.text))


def nodes(found: Families, known: Sequence[NodeRecord]) -> None:
    states = counted(Counter(node.state for node in known), (READY, DRAINING, LOST))
    pressure = {node.node_id: node.pressure for node in known if node.pressure is not None}
    found.gauges("nodes", "Nodes by state.", "state", states)
    found.gauges(
        "node_capacity", "Sessions that a node takes.", "node", {node.node_id: node.capacity for node in known}
    )
    found.gauges("node_pressure", "How full a node's engine is, 0 to 1.", "node", pressure)
    stages = GaugeMetricFamily(
        "polar_service_node_stage_sessions", "Sessions by node and stage.", labels=["node", "stage"]
    )
    for node in known:
        for stage, count in node.stages.items():
            stages.add_metric([node.node_id, stage], count)
    found.append(stages)


async def store(found: Families, control: Coordinator) -> None:
    callbacks = CallbackStore(control.store)
    try:
        tasks, sessions = await control.store.task_counts(), await control.store.session_counts()
        told, retried = await callbacks.counts(), await callbacks.retried()
    except StoreError:
        found.gauge("store_up", "1 if the store can be read.", 0)
        return
    found.gauge("store_up", "1 if the store can be read.", 1)
    found.gauges("tasks", "Tasks that are kept, by state.", "state", counted(tasks, TaskState))
    found.gauges("kept_sessions", "Samples that are kept, by status.", "status", counted(sessions, SessionStatus))
    found.gauges("callbacks", "Callbacks that are kept, by state.", "state", counted(told, CallbackState))
    found.gauge("callbacks_retried", "Pending callbacks that failed before.", retried)


def counted[T: str](counts: Mapping[T, int], known: Iterable[T]) -> dict[str, float]:
    """With a 0 for each that there is none of."""
    return {str(one): counts.get(one, 0) for one in known}
