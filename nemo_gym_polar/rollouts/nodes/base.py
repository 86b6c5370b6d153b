# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A node: a machine that runs a gateway with its sessions, behind one small protocol.

The control plane pulls: a node keeps what happened to its sessions, the results included, until it is told that they
are stored. So a control plane that restarts finds its nodes where it left them and asks again, and nothing that a node
says can get lost on the way. All calls may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nemo_gym_polar.rollouts.task import SessionResult, SessionStatus, TaskRequest


class NodeError(Exception):
    """The node can't be reached, or refused."""


class NodeBusyError(NodeError):
    """The node takes nothing now, and has begun nothing of what it was asked."""


class NodeLostError(NodeError):
    """The node is gone for good, with all that ran on it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One session to run. `session_id` is its public id, new for every attempt; it is not a secret."""

    session_id: str
    request: TaskRequest
    sample: int
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Report:
    """Where a session is now. A terminal status comes with the `result`; `cursor` orders the reports of a node."""

    cursor: int
    session_id: str
    status: SessionStatus
    result: SessionResult | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """What a node can take and what it has. `stages` counts sessions by stage.

    `capacity` is how many sessions may be on the node at once, all stages together; `pressure` is how full its engine
    is, from 0 (idle) to 1 (every place taken), None where nobody knows.
    """

    capacity: int
    sessions: int
    stages: Mapping[str, int] = field(default_factory=dict)
    pressure: float | None = None
    draining: bool = False
    paused: bool = False
    policy_version: str | None = None

    @property
    def free(self) -> int:
        return 0 if self.draining else max(0, self.capacity - self.sessions)


class Node(Protocol):
    """Raises `NodeError` where a call gets no answer in time, `NodeLostError` when none will ever come."""

    @property
    def id(self) -> str: ...

    async def start(self, assignment: Assignment) -> None:
        """Take a session on; one that is known already is not started again. `RolloutError` for a task that is wrong,
        `NodeBusyError` for a node that takes nothing now. After any other `NodeError` the session may have begun."""

    async def cancel(self, session_id: str) -> None:
        """End a session wherever it is; it is reported as CANCELLED. An unknown one is no error."""

    async def reports(self, after: int, wait: float) -> Sequence[Report]:
        """The last report of every session that changed after the cursor `after`, in order; waits up to `wait` seconds
        for the first. With `after` 0: of every session that is not acknowledged."""

    async def acknowledge(self, session_ids: Sequence[str]) -> None:
        """The results of these sessions are stored: the node may forget them."""

    async def load(self) -> Load: ...

    async def drain(self) -> None:
        """Take no more sessions; those that are there run to their end."""

    async def pause(self, seconds: float) -> None:
        """Hold back new generations and wait until none is in flight; `NodeError` if that takes longer."""

    async def resume(self, policy_version: str | None = None) -> None:
        """Generate again, from here on with weights of this version."""

    async def close(self) -> None: ...
