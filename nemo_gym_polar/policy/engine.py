# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The scheduler on a thread of its own, behind an asyncio face.

Everything that touches the scheduler runs on its thread, between two steps: new work, aborts, pauses, new weights.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from nemo_gym_polar.policy.scheduler import Scheduler
from nemo_gym_polar.policy.sequence import SampledSequence
from nemo_gym_polar.policy.weights import read_weights

PauseMode = Literal["wait", "abort", "keep"]


class EngineStoppedError(RuntimeError):
    """The engine has been closed, or its thread has failed."""


@dataclass(slots=True)
class _Watcher:
    """A caller of one sequence, woken at its end or after every token."""

    every_token: bool
    event: asyncio.Event = field(default_factory=asyncio.Event)


class Engine:
    """Runs sequences of many callers together. Use as an async context manager."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._watchers: dict[int, _Watcher] = {}
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pause: PauseMode | None = None
        self._drained: list[Future[None]] = []
        self._stopping = False
        self._closed = False
        self._door = threading.Lock()

    async def __aenter__(self) -> Engine:
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._commands.put(self._stop)
        await asyncio.to_thread(self._thread.join)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self._closed

    @property
    def paused(self) -> bool:
        return self._pause is not None

    @property
    def running(self) -> int:
        return self._scheduler.running

    @property
    def waiting(self) -> int:
        return self._scheduler.waiting

    @property
    def version(self) -> str:
        return self._scheduler.version

    @property
    def prompt_tokens(self) -> int:
        return self._scheduler.prompt_tokens

    @property
    def sampled_tokens(self) -> int:
        return self._scheduler.sampled_tokens

    @property
    def weight_loads(self) -> int:
        return self._scheduler.weight_loads

    async def finish(self, sequence: SampledSequence) -> None:
        """Run `sequence` to its end. Cancelling the caller aborts it."""
        async with aclosing(self._follow(sequence, _Watcher(every_token=False))) as moves:
            async for _ in moves:
                pass

    async def watch(self, sequence: SampledSequence) -> AsyncGenerator[None]:
        """Run `sequence`; yield whenever it has grown, the last time when it has ended. Leaving early aborts it."""
        async with aclosing(self._follow(sequence, _Watcher(every_token=True))) as moves:
            async for _ in moves:
                yield

    async def _follow(self, sequence: SampledSequence, watcher: _Watcher) -> AsyncGenerator[None]:
        self._watchers[sequence.number] = watcher
        try:
            await self._call(lambda: self._scheduler.add(sequence))
            while sequence.finish_reason is None:
                await watcher.event.wait()
                watcher.event.clear()
                yield
        finally:
            del self._watchers[sequence.number]
            if sequence.finish_reason is None:
                self._commands.put(lambda: self._abandon(sequence))

    async def pause(self, mode: PauseMode) -> None:
        """Stop sampling. `wait` first ends what runs, `abort` cuts everything off, `keep` freezes it for `resume`."""
        await asyncio.wrap_future(await self._call(lambda: self._begin_pause(mode)))

    async def resume(self) -> None:
        await self._call(self._end_pause)

    async def load(self, directory: Path, version: str | None = None) -> None:
        """Replace the weights by those of `directory`; on a `WeightsError` the old ones stay."""
        weights = await asyncio.to_thread(read_weights, directory)
        await self._call(lambda: self._scheduler.load(weights, version))

    async def set_version(self, version: str) -> None:
        await self._call(lambda: setattr(self._scheduler, "version", version))

    async def _call[Result](self, work: Callable[[], Result]) -> Result:
        """Run `work` on the engine's thread and return what it returns."""
        future: Future[Result] = Future()
        with self._door:
            if self._closed or not self.alive:
                raise EngineStoppedError("the engine is not running; start the server again")
            self._commands.put(lambda: _settle(future, work))
        return await asyncio.wrap_future(future)

    # Below: on the engine's thread.

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._obey()
                if not self._stopping and self._pause not in ("keep", "abort"):
                    self._announce(self._scheduler.step(admit=self._pause is None))
                self._release_drained()
        finally:
            self._shut()

    def _shut(self) -> None:
        """Whether stopped or broken by a step that raised: leave no caller waiting."""
        with self._door:
            self._closed = True
        while not self._commands.empty():
            self._commands.get()()
        self._announce(self._scheduler.abort_all("error", error="the engine has stopped"))
        self._pause = None
        self._release_drained()

    def _obey(self) -> None:
        """Carry out all commands; sleep until there is one if there is nothing else to do."""
        idle = self._scheduler.running == 0 if self._pause == "wait" else self._idle
        if idle:
            self._commands.get()()
        while not self._commands.empty():
            self._commands.get()()

    @property
    def _idle(self) -> bool:
        return self._pause is not None or self._scheduler.running + self._scheduler.waiting == 0

    def _stop(self) -> None:
        self._stopping = True

    def _abandon(self, sequence: SampledSequence) -> None:
        self._scheduler.abort(sequence)

    def _begin_pause(self, mode: PauseMode) -> Future[None]:
        self._pause = mode
        if mode == "abort":
            self._announce(self._scheduler.abort_all())
        done: Future[None] = Future()
        self._drained.append(done)
        self._release_drained()
        return done

    def _end_pause(self) -> None:
        self._pause = None
        self._release_drained()

    def _release_drained(self) -> None:
        if self._pause == "wait" and self._scheduler.running:
            return
        for done in self._drained:
            if done.set_running_or_notify_cancel():
                done.set_result(None)
        self._drained.clear()

    def _announce(self, sequences: list[SampledSequence]) -> None:
        """Wake, in one go, the callers whose sequence has moved on."""
        numbers = [sequence.number for sequence in sequences if self._concerns_caller(sequence)]
        if numbers and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, numbers)

    def _concerns_caller(self, sequence: SampledSequence) -> bool:
        watcher = self._watchers.get(sequence.number)
        return watcher is not None and (watcher.every_token or sequence.finish_reason is not None)

    def _wake(self, numbers: list[int]) -> None:
        for number in numbers:
            if watcher := self._watchers.get(number):
                watcher.event.set()


def _settle[Result](future: Future[Result], work: Callable[[], Result]) -> None:
    """Put the outcome of `work`, whatever it is, into `future`."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - the waiting caller raises it
        future.set_exception(error)
