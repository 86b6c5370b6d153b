# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import os
import signal

import pytest

from nemo_gym_polar.training.errors import TrainingError
from nemo_gym_polar.training.watch import StoppedError, Watch, stop_on_signals


async def never() -> str:
    await asyncio.sleep(3600)
    return ""


class Work:
    """Holds something until it is cancelled, and takes a moment to give it back."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.free = False

    async def run(self) -> None:
        self.begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            self.free = True


async def test_work_that_ends_gives_its_result() -> None:
    async def work() -> int:
        return 7

    assert await Watch(asyncio.Event(), never).over(work()) == 7


async def test_work_that_fails_raises_its_error() -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await Watch(asyncio.Event(), never).over(work())


async def test_a_stop_ends_work_and_waits_until_it_is_free() -> None:
    work, stop = Work(), asyncio.Event()
    running = asyncio.create_task(Watch(stop, never).over(work.run()))
    await work.begun.wait()
    stop.set()
    with pytest.raises(StoppedError):
        await running
    assert work.free


async def test_the_end_of_the_engine_ends_work() -> None:
    async def lost() -> str:
        await asyncio.sleep(0.01)
        return "the engine ended"

    work = Work()
    with pytest.raises(TrainingError, match="the engine ended"):
        await Watch(asyncio.Event(), lost).over(work.run())
    assert work.free


async def test_cancelling_from_outside_ends_work() -> None:
    work = Work()
    running = asyncio.create_task(Watch(asyncio.Event(), never).over(work.run()))
    await work.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert work.free


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_signal_asks_and_the_second_has_its_usual_effect(number: signal.Signals) -> None:
    usual = signal.getsignal(number)
    stop, said = asyncio.Event(), list[str]()
    with stop_on_signals(stop, said.append):
        assert signal.getsignal(number) is not usual
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 5)
        assert len(said) == 1
        assert signal.getsignal(number) in (usual, signal.default_int_handler, signal.SIG_DFL)


async def test_in_another_thread_signals_are_left_alone() -> None:
    def elsewhere() -> None:
        async def inside() -> None:
            with stop_on_signals(asyncio.Event(), print):
                pass

        asyncio.run(inside())

    await asyncio.to_thread(elsewhere)
