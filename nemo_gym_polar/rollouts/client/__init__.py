# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout service from Python.

async with RolloutClient("http://127.0.0.1:8080", token) as client:
    await client.submit(TaskRequest(task_id="one", instruction="Fix the test.", num_samples=8))
    task = await client.wait("one")

`SyncRolloutClient` is the same for programs that have no event loop.
"""

from nemo_gym_polar.rollouts.client.client import RolloutClient
from nemo_gym_polar.rollouts.client.errors import (
    BusyError,
    ConflictError,
    NotFoundError,
    RefusedError,
    ServiceError,
    UnauthorizedError,
    UnreachableError,
)
from nemo_gym_polar.rollouts.client.sync import SyncRolloutClient

__all__ = [
    "BusyError",
    "ConflictError",
    "NotFoundError",
    "RefusedError",
    "RolloutClient",
    "ServiceError",
    "SyncRolloutClient",
    "UnauthorizedError",
    "UnreachableError",
]
