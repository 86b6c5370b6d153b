# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The service's calls, typed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts.api.shapes import (
    InferenceStatus,
    NodeShape,
    SessionShape,
    Submitted,
    TaskLine,
    TaskShape,
)
from nemo_gym_polar.rollouts.client.calls import Calls, pause, said
from nemo_gym_polar.rollouts.client.errors import BusyError, UnreachableError, make_error
from nemo_gym_polar.rollouts.client.stream import read_events
from nemo_gym_polar.rollouts.control.records import EventRecord, TaskState
from nemo_gym_polar.rollouts.results import read_row
from nemo_gym_polar.rollouts.retention.pruned import Pruned
from nemo_gym_polar.rollouts.retention.settings import Bounds
from nemo_gym_polar.rollouts.task import TaskRequest

ENDED = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED})
PRUNING = 3600.0  # seconds that a large store may take
FIRST_LOOK, LONGEST_LOOK = 0.1, 2.0  # seconds between looks at a task that is waited for


class RolloutClient(Calls):
    """Use it as a context manager, or close it. Every call may be repeated, and is while nobody answers."""

    async def submit(self, request: TaskRequest | Mapping[str, Any], *, patience: float = 0.0) -> Submitted:
        """The same task again is the same task. While the service is full this asks again, for `patience` seconds."""
        body = request.model_dump(mode="json") if isinstance(request, TaskRequest) else dict(request)
        until = time.monotonic() + patience
        while True:
            try:
                return Submitted.model_validate(await self.call("POST", "/rollout/task/submit", body=body))
            except BusyError as error:
                if time.monotonic() + error.retry_after > until:
                    raise
                await asyncio.sleep(error.retry_after)

    async def task(self, task_id: str, *, traces: bool = True) -> TaskShape:
        """With the results of all sessions that have ended."""
        return TaskShape.model_validate(await self.call("GET", task_path(task_id), traces=traces))

    async def wait(self, task_id: str, *, timeout: float | None = None, traces: bool = True) -> TaskShape:
        """The task once it has ended. Raises `TimeoutError` after `timeout` seconds; the task goes on."""
        delay = FIRST_LOOK
        async with asyncio.timeout(timeout):
            while (await self.task(task_id, traces=False)).status not in ENDED:
                await asyncio.sleep(delay)
                delay = min(LONGEST_LOOK, 1.5 * delay)
            return await self.task(task_id, traces=traces)

    async def cancel(self, task_id: str, *, register_if_missing: bool = False) -> TaskShape:
        asked = {"register_if_missing": register_if_missing}
        return TaskShape.model_validate(await self.call("DELETE", task_path(task_id), **asked))

    async def tasks(
        self,
        *,
        status: TaskState | None = None,
        harness: str | None = None,
        since: float | None = None,
        limit: int | None = None,
    ) -> list[TaskLine]:
        """The newest first."""
        found = await self.call("GET", "/tasks", status=status, harness=harness, since=since, limit=limit)
        return [TaskLine.model_validate(row) for row in found["tasks"]]

    async def sessions(self, task_id: str) -> list[SessionShape]:
        """Every attempt at every sample, without token arrays."""
        found = await self.call("GET", f"/tasks/{quote(task_id, safe='')}/sessions")
        return [SessionShape.model_validate(row) for row in found["sessions"]]

    async def session(self, session_id: str, *, traces: bool = True) -> SessionShape:
        return SessionShape.model_validate(await self.call("GET", f"/sessions/{session_id}", traces=traces))

    async def traces(self, session_id: str) -> list[Trace]:
        """What to train on, as arrays. Raises `NotFoundError` for a session that has none."""
        text = await self.once("GET", f"/sessions/{session_id}/traces", None, None, {})
        return [read_row(orjson.loads(line)) for line in text.splitlines() if line]

    async def events(self, after: int = 0, *, task_id: str | None = None) -> AsyncGenerator[EventRecord]:
        """What happened after event `after`, then what happens, each once and in order, over reconnections too.
        Raises `UnreachableError` once the service can't be reached any more."""
        failures = 0
        while True:
            try:
                async for event in self._stream(after, task_id):
                    after, failures = event.id, 0
                    yield event
            except UnreachableError:
                failures += 1
                if failures >= self.attempts:
                    raise
                await asyncio.sleep(pause(failures))

    async def _stream(self, after: int, task_id: str | None) -> AsyncIterator[EventRecord]:
        asked = {"task_id": task_id} if task_id is not None else {}
        limit = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=60.0)
        headers = {"Last-Event-ID": str(after)}
        url = f"{self.url}/events"
        try:
            async with self.http.get(url, params=asked, headers=headers, timeout=limit) as reply:
                if reply.status != 200:
                    raise make_error(reply.status, said(await reply.read()), None, self.url)
                async for event in read_events(reply.content):
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"the events of {self.url} broke off: {error or type(error).__name__}") from error
        raise UnreachableError(f"the events of {self.url} ended")

    async def status(self) -> dict[str, Any]:
        found: dict[str, Any] = await self.call("GET", "/rollout/status")
        return found

    async def nodes(self) -> list[NodeShape]:
        return [NodeShape.model_validate(row) for row in await self.call("GET", "/nodes")]

    async def drain(self, node_id: str, *, remove: bool = False) -> NodeShape:
        """No more sessions for a node; `remove` gives up what it still runs and forgets it."""
        path = f"/nodes/{quote(node_id, safe='')}"
        return NodeShape.model_validate(await self.call("DELETE", path, remove=remove))

    async def prune(self, bounds: Bounds, *, dry_run: bool = False) -> Pruned:
        """Remove ended tasks beyond the bounds; `dry_run` only says which."""
        body = bounds.model_dump(include=set(Bounds.model_fields))
        found = await self.call("POST", "/admin/prune", body=body, timeout=PRUNING, dry_run=dry_run)
        return Pruned.model_validate(found)

    async def pause(self, seconds: float = 300.0) -> InferenceStatus:
        """Before a weight update: no generation is in flight when this returns."""
        path, limit = "/admin/inference/pause", seconds + 60.0
        return InferenceStatus.model_validate(await self.call("POST", path, timeout=limit, timeout_seconds=seconds))

    async def resume(self, policy_version: str | int | None = None) -> InferenceStatus:
        """After it, with the version of the new weights."""
        body = {"policy_version": policy_version}
        return InferenceStatus.model_validate(await self.call("POST", "/admin/inference/resume", body=body))


def task_path(task_id: str) -> str:
    return f"/rollout/task/{quote(task_id, safe='')}"
