# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The learning rate as a function of the step."""

from __future__ import annotations

from nemo_gym_polar.training.settings import OptimizerSettings


def learning_rate(step: int, total_steps: int, settings: OptimizerSettings) -> float:
    """The rate of step 0, 1, …: rises linearly to `lr` in step `warmup_steps`, then stays, or falls linearly so as to
    reach `final_fraction` of it in the last step. After that it stays there."""
    if step < settings.warmup_steps:
        return settings.lr * (step + 1) / (settings.warmup_steps + 1)
    if settings.schedule == "constant":
        return settings.lr
    falling = max(1, total_steps - 1 - settings.warmup_steps)
    progress = min(1.0, (step - settings.warmup_steps) / falling)
    return settings.lr * (1 - progress * (1 - settings.final_fraction))
