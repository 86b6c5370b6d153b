# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node that is a Ray actor, as the service sees it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayError, RayTaskError

from nemo_gym_polar import __version__
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import Assignment, Load, NodeError, NodeLostError, Report
from nemo_gym_polar.rollouts.nodes.ray_actor import About, Method
from nemo_gym_polar.rollouts.nodes.ray_calls import in_turn
from nemo_gym_polar.rollouts.nodes.ray_settings import NodeSettings


class RayNode:
    """`actor` is None for one that is gone. Results come through Ray's object store, arrays uncopied."""

    def __init__(self, node_id: str, actor: ActorHandle[Any] | None, timeout: float = 30.0) -> None:
        self._id = node_id
        self._actor = actor
        self._timeout = timeout

    @property
    def id(self) -> str:
        return self._id

    async def open(self, settings: NodeSettings, seconds: float) -> About:
        """Have it listen, or find that it does already."""
        about: About = await self._ask(self._there.open.remote(settings, __version__), seconds)
        return about

    async def where(self) -> About | None:
        about: About | None = await self._ask(self._there.where.remote())
        return about

    async def start(self, assignment: Assignment) -> None:
        await self._call("start", assignment)

    async def cancel(self, session_id: str) -> None:
        await self._call("cancel", session_id)

    async def reports(self, after: int, wait: float) -> Sequence[Report]:
        found: Sequence[Report] = await self._call("reports", after, wait, seconds=wait)
        return found

    async def acknowledge(self, session_ids: Sequence[str]) -> None:
        await self._call("acknowledge", list(session_ids))

    async def load(self) -> Load:
        load: Load = await self._call("load")
        return load

    async def drain(self) -> None:
        await self._call("drain")

    async def pause(self, seconds: float) -> None:
        await self._call("pause", seconds, seconds=seconds)

    async def resume(self, policy_version: str | None = None) -> None:
        await self._call("resume", policy_version)

    async def close(self) -> None:
        """End its sessions and the actor itself."""
        if self._actor is not None:
            with contextlib.suppress(NodeError):
                await self._ask(self._actor.close.remote())
            await self.kill()
            await self._is_gone()

    async def kill(self) -> None:
        if self._actor is not None:
            await in_turn(ray.kill, self._actor)

    async def _is_gone(self) -> None:
        """`ray.kill` only asks: a caller that disconnects right after it may take its request along."""
        with contextlib.suppress(NodeError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                while True:
                    await self.where()
                    await asyncio.sleep(0.02)

    @property
    def _there(self) -> Any:
        if self._actor is None:
            raise NodeLostError(f"no actor named {self.id} is left on the cluster")
        return self._actor

    async def _call(self, method: Method, *arguments: Any, seconds: float = 0.0) -> Any:
        return await self._ask(self._there.call.remote(method, *arguments), seconds)

    async def _ask(self, answer: Awaitable[Any], seconds: float = 0.0) -> Any:
        limit = self._timeout + seconds
        async with told(self.id, limit), asyncio.timeout(limit):
            return await answer


@contextlib.asynccontextmanager
async def told(node_id: str, limit: float) -> AsyncIterator[None]:
    """What Ray raises, as an error of a node."""
    try:
        yield
    except RayTaskError as error:  # the first, since it is an instance of its cause's type, too
        cause = error.cause
        if isinstance(cause, (NodeError, RolloutError)):
            raise cause from None
        raise NodeError(f"node {node_id}: {cause!r}") from error
    except TimeoutError:
        raise NodeError(f"node {node_id} gave no answer for {limit:.0f} s") from None
    except (ActorDiedError, ActorUnschedulableError) as error:
        raise NodeLostError(first_line(error)) from error
    except RayError as error:  # unreachable for now, or an answer was lost: to be asked again
        raise NodeError(f"node {node_id}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
