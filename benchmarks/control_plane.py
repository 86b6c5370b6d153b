# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the control plane itself costs for a session: store, placement, reports, results.

    python benchmarks/control_plane.py [--nodes N] [--tasks N] [--samples N] [--store URL] [--json]

The coordinator and its store are real, SQLite in a directory of its own unless `--store` names another. The nodes end
each session at once, with a result that has one short trace, so that only the control plane takes time. Its rate is
what bounds how many nodes one service can feed (`stage_model.py --control-ms`).
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from machine import measured
from rows import shown

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.records import TaskState
from nemo_gym_polar.rollouts.control.settings import ControlSettings
from nemo_gym_polar.rollouts.nodes.base import Assignment, Load, Report
from nemo_gym_polar.rollouts.nodes.outbox import Outbox
from nemo_gym_polar.rollouts.store.store import Store
from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus, TaskRequest

TOKENS = 512
STAGES = (SessionStatus.INIT, SessionStatus.READY, SessionStatus.RUNNING, SessionStatus.POSTRUN)


class InstantNode:
    """Every session goes through all stages as soon as it is there."""

    def __init__(self, name: str, capacity: int) -> None:
        self.id = name
        self._capacity = capacity
        self._outbox = Outbox()

    async def start(self, assignment: Assignment) -> None:
        for stage in STAGES:
            self._outbox.put(assignment.session_id, stage)
        self._outbox.put(assignment.session_id, SessionStatus.COMPLETED, result(assignment))

    async def cancel(self, session_id: str) -> None:
        pass

    async def reports(self, after: int, wait: float) -> Sequence[Report]:
        return await self._outbox.after(after, wait)

    async def acknowledge(self, session_ids: Sequence[str]) -> None:
        self._outbox.forget(session_ids)

    async def load(self) -> Load:
        return Load(self._capacity, len(self._outbox))

    async def drain(self) -> None:
        pass

    async def pause(self, seconds: float) -> None:
        pass

    async def resume(self, policy_version: str | None = None) -> None:
        pass

    async def close(self) -> None:
        pass


def result(assignment: Assignment) -> SessionResult:
    mask = np.zeros(TOKENS, np.bool_)
    mask[TOKENS // 2 :] = True
    trace = Trace(
        session_id=assignment.session_id,
        index=0,
        kind="main",
        token_ids=np.arange(TOKENS, dtype=np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, np.float32(-0.5), np.float32(0)),
        turns=(0,),
    )
    return SessionResult(
        session_id=assignment.session_id,
        task_id=assignment.request.task_id,
        sample=assignment.sample,
        status=SessionStatus.COMPLETED,
        reward=1.0,
        traces=[trace],
    )


async def run(url: str | None, nodes: int, tasks: int, samples: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        settings = ControlSettings(directory=root, max_waiting=tasks * samples)
        async with Store(url or f"sqlite:///{root}/polar.db") as store, Coordinator(store, settings) as control:
            for number in range(nodes):
                await control.add_node(InstantNode(f"n{number}", 64), kind="bench")
            began, cpu = time.perf_counter(), time.process_time()
            for number in range(tasks):
                await control.submit(TaskRequest(task_id=f"t{number}", instruction="Work.", num_samples=samples))
            submitted = time.perf_counter() - began
            async for event in control.events():
                if event.kind.startswith("task.") and (await control.status()).tasks.get(TaskState.COMPLETED) == tasks:
                    break
            seconds, used = time.perf_counter() - began, time.process_time() - cpu
    sessions = tasks * samples
    return {
        "nodes": nodes,
        "sessions": sessions,
        "cpu_ms_per_session": 1e3 * used / sessions,
        "sessions_per_second": sessions / seconds,
        "submit_ms": 1e3 * submitted / tasks,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--store", help="URL, like postgresql://… (default: SQLite)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with measured() as here:
        row = asyncio.run(run(options.store, options.nodes, options.tasks, options.samples))
    print(shown({"machine": here, **row}, [row], as_json=options.json))


if __name__ == "__main__":
    main()
