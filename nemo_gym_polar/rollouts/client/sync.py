# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The same calls for programs that have no event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.api.shapes import (
    InferenceStatus,
    NodeShape,
    SessionShape,
    Submitted,
    TaskLine,
    TaskShape,
)
from nemo_gym_polar.rollouts.client.client import RolloutClient
from nemo_gym_polar.rollouts.control.records import EventRecord, TaskState
from nemo_gym_polar.rollouts.retention.pruned import Pruned
from nemo_gym_polar.rollouts.retention.settings import Bounds
from nemo_gym_polar.rollouts.task import TaskRequest


class SyncRolloutClient:
    """Use it as a context manager, in one thread. Where a loop runs already, as in a notebook, use `RolloutClient`."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 60.0, attempts: int = 4) -> None:
        self._client = RolloutClient(url, token, timeout=timeout, attempts=attempts)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._run(self._client.close())
        self._runner.close()

    def submit(self, request: TaskRequest | Mapping[str, Any], *, patience: float = 0.0) -> Submitted:
        """The same task again is the same task. While the service is full this asks again, for `patience` seconds."""
        return self._run(self._client.submit(request, patience=patience))

    def task(self, task_id: str, *, traces: bool = True) -> TaskShape:
        return self._run(self._client.task(task_id, traces=traces))

    def wait(self, task_id: str, *, timeout: float | None = None, traces: bool = True) -> TaskShape:
        """The task once it has ended. Raises `TimeoutError` after `timeout` seconds; the task goes on."""
        return self._run(self._client.wait(task_id, timeout=timeout, traces=traces))

    def cancel(self, task_id: str, *, register_if_missing: bool = False) -> TaskShape:
        return self._run(self._client.cancel(task_id, register_if_missing=register_if_missing))

    def tasks(
        self,
        *,
        status: TaskState | None = None,
        harness: str | None = None,
        since: float | None = None,
        limit: int | None = None,
    ) -> list[TaskLine]:
        """The newest first."""
        return self._run(self._client.tasks(status=status, harness=harness, since=since, limit=limit))

    def sessions(self, task_id: str) -> list[SessionShape]:
        return self._run(self._client.sessions(task_id))

    def session(self, session_id: str, *, traces: bool = True) -> SessionShape:
        return self._run(self._client.session(session_id, traces=traces))

    def traces(self, session_id: str) -> list[Trace]:
        """What to train on, as arrays. Raises `NotFoundError` for a session that has none."""
        return self._run(self._client.traces(session_id))

    def events(self, after: int = 0, *, task_id: str | None = None) -> Iterator[EventRecord]:
        """What happened after event `after`, then what happens; it waits for the next one. Leave it, and the stream is
        closed."""
        found = self._client.events(after, task_id=task_id)
        try:
            while True:
                yield self._run(following(found))
        finally:
            self._run(found.aclose())

    def status(self) -> dict[str, Any]:
        return self._run(self._client.status())

    def nodes(self) -> list[NodeShape]:
        return self._run(self._client.nodes())

    def drain(self, node_id: str, *, remove: bool = False) -> NodeShape:
        """No more sessions for a node; `remove` gives up what it still runs and forgets it."""
        return self._run(self._client.drain(node_id, remove=remove))

    def prune(self, bounds: Bounds, *, dry_run: bool = False) -> Pruned:
        """Remove ended tasks beyond the bounds; `dry_run` only says which."""
        return self._run(self._client.prune(bounds, dry_run=dry_run))

    def pause(self, seconds: float = 300.0) -> InferenceStatus:
        """Before a weight update: no generation is in flight when this returns."""
        return self._run(self._client.pause(seconds))

    def resume(self, policy_version: str | int | None = None) -> InferenceStatus:
        """After it, with the version of the new weights."""
        return self._run(self._client.resume(policy_version))

    def _run[T](self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(work)
        finally:
            work.close()  # where a loop runs already it was not begun


async def following(events: AsyncGenerator[EventRecord]) -> EventRecord:
    return await anext(events)
