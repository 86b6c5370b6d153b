# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The stages for Prometheus: who is where now, how full the pools are, and how long each part of a session took."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nemo_gym_polar.rollouts.stages import Pools

BUCKETS = (0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)


class StageMetrics(Collector):
    """Everything but the histogram is read from the pools when it is asked for."""

    def __init__(self, pools: Pools) -> None:
        self.pools = pools
        said = "Seconds that sessions spent in each stage and part of one."
        self.seconds = Histogram("polar_stage_seconds", said, ["part"], buckets=BUCKETS, registry=None)
        pools.on_left = self.observe

    def observe(self, seconds: dict[str, float]) -> None:
        for part, value in seconds.items():
            self.seconds.labels(part).observe(value)

    def collect(self) -> Iterable[Metric]:
        yield self.sessions()
        yield from self.places()
        yield from self.seconds.collect()

    def sessions(self) -> Metric:
        family = GaugeMetricFamily("polar_stage_sessions", "Sessions in each stage.", labels=["stage"])
        for stage, number in self.pools.gauges.items():
            family.add_metric([stage], number)
        return family

    def places(self) -> Iterable[Metric]:
        said = {"size": "Places of each pool.", "used": "Places that are taken.", "waiting": "Sessions in its queue."}
        for name, text in said.items():
            family = GaugeMetricFamily(f"polar_pool_{name}", text, labels=["pool"])
            for pool, usage in self.pools.usage.items():
                family.add_metric([pool], getattr(usage, name))
            yield family
