# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A real Ray cluster of several machines, all of them on this one: a head that takes no work and any number of others.

The processes belong to a process of their own, which ends them when its stdin closes, however the test ended.
It reads one command a line and answers with one: `add` → the new machine's id, `kill ID` → `ok`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "6",
    "RAY_health_check_initial_delay_ms": "0",
    "OMP_NUM_THREADS": "1",
}
STARTED = 120.0  # seconds for a machine to come up on a busy test machine
MEMORY = 80_000_000


@dataclass(slots=True)
class Hosts:
    """`address` is the cluster's, `machines` the Ray ids of the living machines that take work, in order."""

    process: Process
    address: str
    machines: list[str]

    async def add(self) -> str:
        machine = await self._say("add")
        self.machines.append(machine)
        return machine

    async def kill(self, machine: str) -> None:
        """SIGKILL for its raylet, without a word to the rest of the cluster."""
        await self._say(f"kill {machine}")
        self.machines.remove(machine)

    async def _say(self, command: str) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{command}\n".encode())
        return (await asyncio.wait_for(self.process.stdout.readline(), STARTED)).decode().strip()


@contextlib.asynccontextmanager
async def ray_hosts(machines: int) -> AsyncIterator[Hosts]:
    with tempfile.TemporaryDirectory(prefix="pr-", ignore_cleanup_errors=True) as directory:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.ray_hosts"),
            env={**os.environ, **QUIET, "RAY_TMPDIR": directory},
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
        )
        assert process.stdin and process.stdout
        try:
            address = (await asyncio.wait_for(process.stdout.readline(), STARTED)).decode().strip()
            assert address, "the head of the Ray cluster did not come up"
            hosts = Hosts(process, address, [])
            for _ in range(machines):
                await hosts.add()
            yield hosts
        finally:
            process.stdin.close()
            await process.wait()


def main() -> None:
    from ray.cluster_utils import Cluster

    spoken = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Ray prints, too
    (Path(os.environ["RAY_TMPDIR"]) / "ray").mkdir()
    head: dict[str, Any] = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    added = {}
    try:
        print(cluster.address, file=spoken)
        for line in sys.stdin:
            match line.split():
                case ["add"]:
                    node = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
                    added[node.node_id] = node
                    print(node.node_id, file=spoken)
                case ["kill", name]:
                    cluster.remove_node(added.pop(name), allow_graceful=False)
                    print("ok", file=spoken)
    finally:
        cluster.shutdown()
        shutil.rmtree(Path(os.environ["RAY_TMPDIR"]) / "ray", ignore_errors=True)


if __name__ == "__main__":
    main()
