# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The loss of a Ray cluster's head: all that ran is given up, and tried again on the next cluster at that address."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import psutil
import pytest

from tests.support.ray_machines import PATIENCE, Site, site, until
from tests.support.ray_networks import Machine
from tests.support.ray_services import WAIT

GIVES_UP = {"RAY_gcs_rpc_server_reconnect_timeout_s": "10"}  # a minute, if nothing is said


@pytest.mark.timeout(1200)
async def test_what_ran_when_the_head_died_is_tried_again_on_the_next_cluster_and_nothing_is_left_of_it(
    model_directory: Path, short_path: Path
) -> None:
    gate = short_path / "open"
    async with site(short_path, model_directory, 1, GIVES_UP) as made:
        await made.serve()
        await made.submit("before", 2)
        await until(lambda: made.count("before", "COMPLETED") == 2)
        await made.submit("during", 2, before=WAIT.format(gate))
        await until(lambda: made.count("during", "RUNNING") == 2)
        begun = made.ran("during", lost=False)
        await lose_head(made)
        await until(lambda: not made.machines[0].named({*begun, "NodeActor"}))
        await made.end()
        await made.start_cluster()
        await made.serve()
        gate.touch()
        await until(lambda: made.count("during", "COMPLETED") == 2)
        assert made.ran("during", lost=True) == begun
        assert not made.ran("before", lost=True)
        made.record.check(model_directory)


async def lose_head(made: Site) -> None:
    """The service ends with it, by Ray's hand."""
    assert made.service
    kill(made.head, "gcs_server", "raylet")
    assert await asyncio.wait_for(made.service.wait(), PATIENCE) != 0


def kill(machine: Machine, *names: str) -> None:
    for process in machine.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() in names:
                process.kill()
