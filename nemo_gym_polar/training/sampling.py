# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks into finished groups, for training and for evaluation alike."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from nemo_gym_polar.rollouts.service import GroupResult, RolloutService
from nemo_gym_polar.rollouts.task import TaskRequest
from nemo_gym_polar.tasks import TaskRow
from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.reports import sampled_tokens
from nemo_gym_polar.training.run_settings import TrainSettings


def make_request(row: TaskRow, samples: int, settings: TrainSettings) -> TaskRequest:
    request = row.request(
        num_samples=samples,
        timeout_seconds=settings.env.timeout,
        agent=settings.harness,
        runtime=settings.runtime,
        builder=settings.builder,
    )
    evaluator = settings.own_evaluator
    return request if evaluator is None else request.model_copy(update={"evaluator": evaluator})


def choose_held_out(rows: Sequence[TaskRow], settings: TrainSettings) -> list[TaskRow]:
    """The tasks that are measured before and after: the same for the same seed."""
    order = np.random.default_rng([settings.seed, 3]).permutation(len(rows))
    return [rows[index] for index in order[: settings.env.heldout]]


async def run_groups(service: RolloutService, requests: Sequence[TaskRequest]) -> list[GroupResult]:
    """All groups, in the order of `requests`. Raises TrainingError if not one session sampled a token."""
    running = [asyncio.ensure_future(service.run(request)) for request in requests]
    try:
        groups = await asyncio.gather(*running)
    finally:
        for group in running:
            group.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    _require_tokens(groups)
    return groups


def _require_tokens(groups: Sequence[GroupResult]) -> None:
    """A batch in which every session failed is no batch of bad answers."""
    sessions = [session for group in groups for session in group.sessions]
    if any(sampled_tokens(session) for session in sessions):
        return
    errors = sorted({session.error for session in sessions if session.error}) or ["the harness never called the model"]
    raise TrainingError(f"none of {len(sessions)} sessions sampled a token; the first error: {errors[0]}")
