# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Tells callback addresses of results: reads the events once, keeps what is to be told, tells it until it is heard.

Invariant: an event that is to be told is in the store as a callback before the events' cursor passes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

from nemo_gym_polar import __version__
from nemo_gym_polar.rollouts.api.answers import OPTIONS
from nemo_gym_polar.rollouts.api.results import Results
from nemo_gym_polar.rollouts.callbacks.settings import CallbackSettings
from nemo_gym_polar.rollouts.callbacks.signature import HEADER, sign
from nemo_gym_polar.rollouts.control.coordinator import Coordinator
from nemo_gym_polar.rollouts.control.errors import ControlError
from nemo_gym_polar.rollouts.control.records import EventRecord
from nemo_gym_polar.rollouts.store.callbacks import CallbackRecord, CallbackState, CallbackStore
from nemo_gym_polar.rollouts.store.errors import StoreError

logger = logging.getLogger(__name__)

SESSION_ENDS = frozenset({"session.completed", "session.timeout", "session.error", "session.cancelled"})
TASK_ENDS = frozenset({"task.completed", "task.failed", "task.cancelled"})
PAGE = 256
RETRY = 2.0  # seconds after which a store that refused is asked again
Contents = Callable[[CallbackRecord], Awaitable[Any]]


class Delivery:
    """`contents` gives what is sent, as it is at that moment. Use it as a context manager."""

    def __init__(self, control: Coordinator, settings: CallbackSettings, contents: Contents) -> None:
        self.control = control
        self.settings = settings
        self.contents = contents
        self.store = CallbackStore(control.store)
        self._added = asyncio.Event()
        self._sending: dict[int, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(headers={"user-agent": f"nemo-gym-polar/{__version__}"})
        self._loops = [self.control.roster.spawn(forever(work)) for work in (self._collect, self._send)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in (*self._loops, *self._sending.values()):
            task.cancel()
        await asyncio.gather(*self._loops, *self._sending.values(), return_exceptions=True)
        await self._client.close()

    # What is to be told

    async def _collect(self) -> None:
        cursor = await self.store.cursor()
        skipped = 0
        async for event in self.control.events(cursor):
            told = await self._record(event)
            skipped += 1
            if told or skipped >= PAGE:
                await self.store.add([told] if told else [], event.id)
                skipped = 0
            if told:
                self._added.set()

    async def _record(self, event: EventRecord) -> CallbackRecord | None:
        ends = event.kind in TASK_ENDS or (event.kind in SESSION_ENDS and event.data.get("current", True))
        if not ends or event.task_id is None:
            return None
        task = await self.control.store.task(event.task_id)
        if task is None or task.request is None or task.request.callback_url is None:
            return None
        return CallbackRecord(
            id=event.id,
            task_id=event.task_id,
            session_id=event.session_id,
            url=task.request.callback_url,
            state=CallbackState.PENDING,
            attempts=0,
            created=time.time(),
            due=time.time(),
        )

    # Telling it

    async def _send(self) -> None:
        while True:
            self._added.clear()
            soonest = await self._begin()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, soonest - time.time())):
                    await self._added.wait()

    async def _begin(self) -> float:
        """Start what is due; when to look again."""
        soonest = time.time() + 3600.0
        under_way = set(self._sending)  # as of before the store is asked: its answer may be older than their ends
        for record in await self.store.pending(len(under_way) + self.settings.at_once + 1):
            if record.id in under_way:
                continue
            if record.due > time.time():
                return min(soonest, record.due)
            if len(self._sending) >= self.settings.at_once:
                break  # one that ends wakes us
            task = asyncio.create_task(self._tell(record))
            self._sending[record.id] = task
            task.add_done_callback(partial(self._told, record.id))
        return soonest

    def _told(self, name: int, _: asyncio.Task[None]) -> None:
        del self._sending[name]
        self._added.set()

    async def _tell(self, record: CallbackRecord) -> None:
        error = await self._post(record)
        after = self._after(record, error)
        if after.state is CallbackState.GIVEN_UP:
            logger.error(
                "callback %d to %s is given up after %d tries: %s", record.id, record.url, after.attempts, error
            )
        await forever(lambda: self.store.change(after), once=True)

    def _after(self, record: CallbackRecord, error: str | None) -> CallbackRecord:
        attempts, now = record.attempts + 1, time.time()
        if error is None:
            update: dict[str, Any] = {"state": CallbackState.DELIVERED, "error": None}
        elif now + self._delay(attempts) > record.created + self.settings.give_up_after:
            update = {"state": CallbackState.GIVEN_UP, "error": error}
        else:
            update = {"due": now + self._delay(attempts) * random.uniform(0.5, 1.0), "error": error}
        return record.model_copy(update={"attempts": attempts, **update})

    def _delay(self, attempts: int) -> float:
        return min(self.settings.longest_delay, self.settings.first_delay * 2.0 ** min(attempts - 1, 60))

    async def _post(self, record: CallbackRecord) -> str | None:
        """What went wrong, if anything did. Redirects are not followed: results go where they were asked for."""
        limit = aiohttp.ClientTimeout(total=self.settings.timeout)
        try:
            content = await self.contents(record)
            body = await asyncio.to_thread(orjson.dumps, content, option=OPTIONS)
            async with self._client.post(
                record.url, data=body, headers=self._headers(record, body), timeout=limit, allow_redirects=False
            ) as reply:
                return None if 200 <= reply.status < 300 else f"answered {reply.status}"
        except (aiohttp.ClientError, ControlError, StoreError, TimeoutError, OSError, ValueError) as error:
            return str(error) or type(error).__name__

    def _headers(self, record: CallbackRecord, body: bytes) -> dict[str, str]:
        key = self.settings.key
        signature = {HEADER: sign(key.get_secret_value().encode(), body, int(time.time()))} if key else {}
        kind = "session.result" if record.session_id else "task.end"
        about = {"X-Polar-Event": kind, "X-Polar-Delivery": str(record.id), "X-Polar-Attempt": str(record.attempts + 1)}
        return {"content-type": "application/json", **about, **signature}


async def forever(work: Callable[[], Awaitable[None]], *, once: bool = False) -> None:
    """Again while the store refuses; `once`: until it is done."""
    while True:
        try:
            await work()
        except StoreError as error:
            logger.warning("callbacks wait: %s", error)
            await asyncio.sleep(RETRY)
        else:
            if once:
                return


def contents_of(control: Coordinator, *, traces: bool) -> Contents:
    """A session's result, or its task with all of them."""
    results = Results(control)

    async def contents(record: CallbackRecord) -> Any:
        if record.session_id is not None:
            return await results.session(await control.session(record.session_id), traces=traces)
        return await results.task(await control.task(record.task_id), traces=traces)

    return contents
