# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Places by priority, and none lost to a cancellation."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_gym_polar.rollouts.pool import Pool, Usage


async def test_priority_first_then_order() -> None:
    pool, served = Pool(1), list[str]()

    async def ask(name: str, priority: int) -> None:
        async with pool.place(priority):
            served.append(name)
            await asyncio.sleep(0)

    asked = [("first", 0), ("low", 0), ("high", 9), ("late", 0), ("also high", 9)]
    await asyncio.gather(*(ask(name, priority) for name, priority in asked))
    assert served == ["first", "high", "also high", "low", "late"]
    assert pool.usage == Usage(1, 0, 0)


async def test_a_place_given_to_someone_who_is_cancelled_goes_on() -> None:
    pool = Pool(1)
    await pool.acquire()
    one, two = asyncio.create_task(pool.acquire()), asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    pool.release()
    one.cancel()  # it has the place, but has not run since
    with pytest.raises(asyncio.CancelledError):
        await one
    await asyncio.wait_for(two, 5)
    assert pool.usage == Usage(1, 1, 0)


async def test_cancelled_waiters_do_not_pile_up() -> None:
    pool = Pool(1)
    await pool.acquire()
    for _ in range(1000):
        waiter = asyncio.create_task(pool.acquire())
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
    assert pool.usage == Usage(1, 1, 0)
    assert len(pool._queue) < 20


Steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=30)


@settings(deadline=None)
@given(st.integers(1, 3), Steps)
def test_whatever_is_cancelled_every_place_comes_back(size: int, steps: list[tuple[int, int, bool]]) -> None:
    """Each step: a priority, how long the place is held, whether its task is cancelled at some point."""

    async def run() -> None:
        pool = Pool(size)

        async def hold(priority: int, turns: int) -> None:
            async with pool.place(priority):
                assert 0 < pool.used <= size
                for _ in range(turns):
                    await asyncio.sleep(0)

        tasks = []
        for priority, turns, cancel in steps:
            tasks.append(asyncio.create_task(hold(priority, turns)))
            await asyncio.sleep(0)
            if cancel:
                tasks[(priority * 7 + turns) % len(tasks)].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        assert pool.usage == Usage(size, 0, 0)

    asyncio.run(run())
