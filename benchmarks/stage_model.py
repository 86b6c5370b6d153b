# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A discrete-event model of the stages, for machines that nobody here has.

    python benchmarks/stage_model.py [--nodes 1 10 100 1000 10000] [--control-ms MS] [--json]

Sessions move through the pools as in the service: a room for ready and running ones together, which is held until
POSTRUN has a place; an engine with so many places for each node; a control plane that takes `--control-ms` of one CPU
for each session (see `benchmarks/control_plane.py`). Costs are those of `stage_costs.py`, in unscaled seconds.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import simpy
from machine import measured
from rows import shown
from stage_costs import Costs

Steps = Iterator[Any]
FEW = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """Pools of one node. `prewarm` 0: the evaluator's sandbox is made when it is needed. `at_once` bounds the sessions
    between their beginning and their end, None where only the pools do."""

    running: int
    init: int
    ready: int
    postrun: int
    prewarm: int
    at_once: int | None


@dataclass(frozen=True, slots=True)
class Modelled:
    nodes: int
    sessions: int
    seconds: float
    sessions_per_second: float
    busy: float
    control_busy: float


class Node:
    def __init__(self, world: simpy.Environment, plan: Plan, places: int) -> None:
        self.plan = plan
        self.workers = simpy.Resource(world, plan.at_once or 1 << 30)
        self.rooms = simpy.Resource(world, plan.running + plan.ready)
        self.init = simpy.Resource(world, plan.init)
        self.run = simpy.Resource(world, plan.running)
        self.postrun = simpy.Resource(world, plan.postrun)
        self.prewarm = simpy.Resource(world, max(1, plan.prewarm))
        self.engine = simpy.Resource(world, places)


class Model:
    """`busy` counts the seconds that engines' places were taken, `governed` those of the control plane, `ended` the
    sessions."""

    def __init__(self, costs: Costs, control_seconds: float, seed: int) -> None:
        self.costs = costs
        self.control_seconds = control_seconds
        self.random = random.Random(seed)
        self.world = simpy.Environment()
        self.control = simpy.Resource(self.world, 1)
        self.busy = self.governed = 0.0
        self.ended = 0
        self._agents = itertools.count()

    def session(self, node: Node) -> Steps:
        with node.workers.request() as worker:
            yield worker
            yield from self.govern()
            room = node.rooms.request()
            yield room
            with node.init.request() as place:
                yield place
                yield self.world.timeout(self.costs.sandbox.draw(self.random, self.costs.scale))
            with node.run.request() as place:
                yield place
                warm = self.world.process(self.sandbox(node)) if node.plan.prewarm else None
                yield from self.agent(node)
            with node.postrun.request() as place:
                yield place
                node.rooms.release(room)
                yield warm or self.world.timeout(self.costs.sandbox.draw(self.random, self.costs.scale))
                yield self.world.timeout(self.costs.evaluation.draw(self.random, self.costs.scale))
        self.ended += 1

    def lane(self, node: Node) -> Steps:
        """One session after another."""
        while True:
            yield from self.session(node)

    def agent(self, node: Node) -> Steps:
        chance = random.Random(next(self._agents))  # as in the measured runs, so that their agents do the same
        for _ in range(self.costs.draw_turns(chance)):
            with node.engine.request() as place:
                yield place
                taken = self.costs.generation.draw(self.random, self.costs.scale)
                self.busy += taken
                yield self.world.timeout(taken)
            yield self.world.timeout(self.costs.tool.draw(chance, self.costs.scale))

    def sandbox(self, node: Node) -> Steps:
        with node.prewarm.request() as place:
            yield place
            yield self.world.timeout(self.costs.sandbox.draw(self.random, self.costs.scale))

    def govern(self) -> Steps:
        if self.control_seconds:
            place = self.control.request()  # no context: to leave that of thousands that still wait takes minutes
            yield place
            self.governed += self.control_seconds
            yield self.world.timeout(self.control_seconds)
            self.control.release(place)


def simulate(plan: Plan, sessions: int, costs: Costs, places: int, *, seed: int = 0) -> Modelled:
    """So many sessions on one node, all there from the beginning, to the end of the last one."""
    model = Model(costs, 0.0, seed)
    node = Node(model.world, plan, places)
    for _ in range(sessions):
        model.world.process(model.session(node))
    model.world.run()
    seconds = model.world.now
    return Modelled(1, sessions, seconds, sessions / seconds, model.busy / (places * seconds), 0.0)


def steady(plan: Plan, costs: Costs, places: int, nodes: int, control_seconds: float, seconds: float) -> Modelled:
    """Nodes that never run out of sessions, over a time that begins when the first sessions have gone through."""
    model = Model(costs, control_seconds, seed=0)
    cluster = [Node(model.world, plan, places) for _ in range(nodes)]
    for _ in range(plan.running + plan.ready + plan.postrun):
        for node in cluster:
            model.world.process(model.lane(node))
    model.world.run(until=seconds)
    ended, busy, governed = model.ended, model.busy, model.governed
    model.world.run(until=2 * seconds)
    share = (model.busy - busy) / (places * nodes * seconds)
    done = model.ended - ended
    return Modelled(nodes, done, seconds, done / seconds, share, (model.governed - governed) / seconds)


def nodes_of(options: argparse.Namespace) -> Iterator[Modelled]:
    """Few nodes are looked at for longer, since they end few sessions."""
    half, costs = options.places // 2, replace(Costs(), scale=1.0)
    plan = Plan(options.places, half, half, options.places, half, None)
    for nodes in options.nodes:
        seconds = options.seconds * max(1, FEW // nodes)
        yield steady(plan, costs, options.places, nodes, options.control_ms / 1e3, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 10, 100, 1000, 10000])
    parser.add_argument("--places", type=int, default=16, help="of one node's engine, and running sessions")
    parser.add_argument("--seconds", type=float, default=300.0, help=f"simulated, longer for fewer than {FEW} nodes")
    parser.add_argument("--control-ms", type=float, default=10.0, help="CPU of the control plane for a session")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with measured() as here:
        rows = [asdict(found) for found in nodes_of(options)]
    sizes = {"places": options.places, "control_ms": options.control_ms}
    print(shown({"machine": here, **sizes, "nodes": rows}, rows, as_json=options.json))


if __name__ == "__main__":
    main()
