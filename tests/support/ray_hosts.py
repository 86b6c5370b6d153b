# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A real Ray cluster of several machines, all of them on this one.

The processes belong to a process of their own, which ends them when its stdin closes, however the test ended.
It says the address and the head's id; then `add` is answered by the new machine's id and `kill ID` by `ok`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
MEMORY = 80_000_000
ATTEMPTS = 5


@dataclass(slots=True)
class Hosts:
    """`address` is the cluster's, `machines` the Ray ids of the living machines, the head first.

    `directory` has all that Ray writes. The calls block for seconds; call them from a thread in an event loop.
    """

    process: subprocess.Popen[str]
    address: str
    directory: Path
    machines: list[str]

    def add(self) -> str:
        machine = self._say("add")
        self.machines.append(machine)
        return machine

    def kill(self, machine: str) -> None:
        """SIGKILL for its raylet, without a word to the rest of the cluster."""
        self._say(f"kill {machine}")
        self.machines.remove(machine)

    def _say(self, command: str) -> str:
        assert self.process.stdin and self.process.stdout
        print(command, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        assert answer, f"the cluster's process ended at {command!r}"
        return answer


@contextlib.contextmanager
def ray_hosts(machines: int) -> Iterator[Hosts]:
    with tempfile.TemporaryDirectory(prefix="pr-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        for attempt in range(ATTEMPTS):  # Ray gives a machine 30 s to come up, and a busy one takes longer
            stack.close()  # ends what is left of the attempt before
            process = stack.enter_context(cluster_process(Path(name) / str(attempt)))
            assert process.stdout
            address, _, head = process.stdout.readline().strip().partition(" ")
            if address:
                break
        assert address, f"the head of the Ray cluster did not come up: {(Path(name) / 'errors').read_text()[-2000:]}"
        hosts = Hosts(process, address, Path(name), [head])
        for _ in range(machines - 1):
            hosts.add()
        yield hosts


@contextlib.contextmanager
def cluster_process(directory: Path) -> Iterator[subprocess.Popen[str]]:
    (directory / "ray").mkdir(parents=True)
    with (
        (directory.parent / "errors").open("ab") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.ray_hosts"],
            env={**environment(), "RAY_TMPDIR": str(directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdin
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(60)


def environment() -> dict[str, str]:
    """Ray's processes import much: without compiled files, if there are none yet, each takes thrice the time."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}, **QUIET}


def patiently(start: Callable[[], Any]) -> Any:
    for _ in range(ATTEMPTS - 1):
        try:
            return start()
        except Exception as error:  # noqa: BLE001 - Ray raises nothing more exact
            print(error, file=sys.stderr)
    return start()


def main() -> None:
    from ray.cluster_utils import Cluster

    spoken = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Ray prints, too
    about: dict[str, Any] = {"num_cpus": 1, "object_store_memory": MEMORY}
    head = {**about, "include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    added = {}
    try:
        print(cluster.address, cluster.head_node.node_id, file=spoken)
        for line in sys.stdin:
            match line.split():
                case ["add"]:
                    node = patiently(lambda: cluster.add_node(**about))
                    added[node.node_id] = node
                    print(node.node_id, file=spoken)
                case ["kill", name]:
                    cluster.remove_node(added.pop(name), allow_graceful=False)
                    print("ok", file=spoken)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
