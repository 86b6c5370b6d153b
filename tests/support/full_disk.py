# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A control plane on a disk that fills up and is cleared again. Prints what it saw.

python -m tests.support.full_disk DIRECTORY
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from nemo_gym_polar.rollouts.control.records import TaskState
from nemo_gym_polar.rollouts.store.errors import StoreError
from tests.support.control import a_task, control_plane, ended, until
from tests.support.simulated_node import SimulatedNode


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def results(directory: Path) -> int:
    return len(list(directory.glob("sessions/*/result.json")))


async def main(directory: Path) -> None:
    async with control_plane(f"sqlite:///{directory}/polar.db", directory) as control:
        node = SimulatedNode()
        await control.add_node(node, kind="far")
        await control.submit(a_task(samples=3))
        await until(lambda: len(node.running) == 3)
        await asyncio.to_thread(fill, directory / "ballast")
        for work in node.started:
            node.end(work.session_id)

        async def trouble() -> str | None:
            return (await control.status()).trouble

        print("trouble:", await until(trouble), flush=True)
        accepted = 0
        with contextlib.suppress(StoreError):
            while accepted < 1000:  # what room there is left is soon gone
                await control.submit(a_task(f"more{accepted}", metadata={"much": "x" * 10_000}))
                accepted += 1
        print("submit refused after", accepted, flush=True)
        print("acknowledged:", len(node.acknowledged), "unstored:", (await control.status()).unstored, flush=True)
        await asyncio.to_thread((directory / "ballast").unlink)
        task = await ended(control)
        assert (task.state, task.usable_sessions) == (TaskState.COMPLETED, 3)
        await until(lambda: len(node.acknowledged) == 3)
        for number in range(accepted):
            assert (await control.task(f"more{number}")).total_sessions == 1
        print("stored:", results(directory), await trouble(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
