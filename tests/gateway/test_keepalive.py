# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio

import pytest

from nemo_gym_polar.gateway.keepalive import KeepAlive


class Beats:
    """Counts beats; one that is `held` goes on only when it is let."""

    def __init__(self) -> None:
        self.number = 0
        self.begun = asyncio.Event()
        self.beaten = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.error: Exception | None = None

    async def __call__(self) -> None:
        self.begun.set()
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        self.number += 1
        self.beaten.set()

    async def reach(self, number: int) -> None:
        async with asyncio.timeout(10):
            while self.number < number:
                self.beaten.clear()
                await self.beaten.wait()


async def test_an_answer_in_time_needs_no_beat() -> None:
    beats = Beats()
    alive = KeepAlive(beats, lambda: True, grace=60, pause=60)
    await asyncio.sleep(0)
    await alive.end()
    assert not beats.begun.is_set()


async def test_it_beats_until_its_end() -> None:
    beats = Beats()
    alive = KeepAlive(beats, lambda: True, grace=0.001, pause=0.001)
    await beats.reach(3)
    await alive.end()
    number = beats.number
    await asyncio.sleep(0.02)
    assert beats.number == number


async def test_it_looks_again_until_it_is_ready() -> None:
    beats, looks = Beats(), iter([False, False, True])
    alive = KeepAlive(beats, lambda: next(looks), grace=0.001, pause=60)
    await beats.reach(1)
    await alive.end()
    assert list(looks) == []
    assert beats.number == 1


async def test_a_beat_that_has_begun_is_not_broken_off() -> None:
    beats = Beats()
    beats.go_on.clear()
    alive = KeepAlive(beats, lambda: True, grace=0.001, pause=60)
    await asyncio.wait_for(beats.begun.wait(), 10)
    ending = asyncio.create_task(alive.end())
    await asyncio.sleep(0.01)
    assert not ending.done()
    beats.go_on.set()
    await asyncio.wait_for(ending, 10)
    assert beats.number == 1


async def test_what_a_beat_raises_is_not_lost() -> None:
    beats = Beats()
    beats.error = RuntimeError("the stream is broken")
    alive = KeepAlive(beats, lambda: True, grace=0.001, pause=60)
    await asyncio.wait_for(beats.begun.wait(), 10)
    with pytest.raises(RuntimeError, match="broken"):
        await alive.end()
