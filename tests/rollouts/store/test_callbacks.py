# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks in the store, on both databases."""

from __future__ import annotations

import time

from nemo_gym_polar.rollouts.control.records import TaskRecord, TaskState
from nemo_gym_polar.rollouts.store.batch import Batch
from nemo_gym_polar.rollouts.store.callbacks import CallbackRecord, CallbackState, CallbackStore
from nemo_gym_polar.rollouts.store.store import Store


def callback(number: int, due: float = 0.0) -> CallbackRecord:
    return CallbackRecord(
        id=number,
        task_id="one",
        session_id=None,
        url="http://127.0.0.1:9/",
        state=CallbackState.PENDING,
        attempts=0,
        created=time.time(),
        due=due,
    )


async def test_callbacks_and_their_cursor(store_url: str) -> None:
    async with Store(store_url) as store:
        task = TaskRecord(task_id="one", state=TaskState.RUNNING, request=None, created=1.0, total_sessions=0)
        await store.write(Batch(new_tasks=[task]))
        kept = CallbackStore(store)
        assert (await kept.cursor(), await kept.pending(10)) == (0, [])
        late, soon = callback(3, due=9.0), callback(7, due=5.0)
        await kept.add([late], 3)
        await kept.add([soon], 7)
        await kept.add([], 2**40)
        assert await kept.pending(10) == [soon, late]
        assert await kept.pending(1) == [soon]
        told = soon.model_copy(update={"state": CallbackState.DELIVERED, "attempts": 1})
        failed = late.model_copy(update={"attempts": 2, "due": 99.0, "error": "answered 500"})
        await kept.change(told)
        await kept.change(failed)
    async with Store(store_url) as store:
        kept = CallbackStore(store)
        assert await kept.cursor() == 2**40
        assert await kept.pending(10) == [failed]
        assert await kept.of_task("one") == [failed, told]
        assert await kept.counts() == {CallbackState.PENDING: 1, CallbackState.DELIVERED: 1}
        assert await store.last_event() == 0
