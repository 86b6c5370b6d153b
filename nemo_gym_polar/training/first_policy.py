# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The policy that a run starts from: a directory that was given, or the embedded policy's warm start."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nemo_gym_polar.policy.warm_start import WarmStartSettings, ensure_policy
from nemo_gym_polar.training.progress import Progress
from nemo_gym_polar.training.run_settings import PolicySettings
from nemo_gym_polar.training.watch import StoppedError


async def first_policy(settings: PolicySettings, progress: Progress, stop: asyncio.Event) -> Path:
    """A model directory. Making one takes about a minute and ends with `StoppedError` when `stop` is set."""
    if settings.model is not None:
        return settings.model
    loop = asyncio.get_running_loop()

    def report(step: int, steps: int, loss: float) -> None:
        if stop.is_set():
            raise StoppedError
        if step == 1 or step % 50 == 0:
            loop.call_soon_threadsafe(progress.say, f"warm start of the policy: {step}/{steps}, loss {loss:.2f}")

    warm = WarmStartSettings(**settings.model_dump(exclude={"name", "model"}))
    return await asyncio.to_thread(ensure_policy, warm, report=report)
