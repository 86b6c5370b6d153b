# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""From a runtime to a sandbox that a harness or an evaluator can work in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nemo_gym_polar.rollouts.actions import Actions
from nemo_gym_polar.rollouts.stages import Track
from nemo_gym_polar.runtimes.base import Runtime


async def furnish(
    runtime: Runtime, files: Mapping[str, bytes], actions: Actions, seconds_left: Callable[[], float], track: Track
) -> None:
    """Start it, write the task's files, do what makes it ready. Raises `SandboxError`."""
    with track.measure("sandbox_start"):
        await runtime.start()
    with track.measure("prepare"):
        for path, data in files.items():
            await runtime.write(path, data)
        await actions.perform(runtime, seconds_left)
