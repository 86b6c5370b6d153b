# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio

import pytest

from nemo_gym_polar.rollouts.cleanup import to_the_end


async def test_the_result_comes_back() -> None:
    assert await to_the_end(asyncio.sleep(0, "done")) == "done"


async def test_a_failure_comes_back() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await to_the_end(fail())


async def test_however_often_it_is_cancelled() -> None:
    steps: list[int] = []

    async def work() -> None:
        for step in range(5):
            await asyncio.sleep(0.01)
            steps.append(step)

    task = asyncio.create_task(to_the_end(work()))
    for _ in range(4):
        await asyncio.sleep(0.005)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == [0, 1, 2, 3, 4]
