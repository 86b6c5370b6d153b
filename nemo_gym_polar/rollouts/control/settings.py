# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How tasks are spread over nodes, and what becomes of sessions whose node is lost."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class LostSessions(StrEnum):
    """What becomes of a session that had begun when its node was lost."""

    RETRY = "retry"
    """It is tried again, up to `max_attempts`."""
    REPORT = "report"
    """It ends as ERROR."""


class GroupPlacement(StrEnum):
    """Which nodes the samples of one task go to, where several have free places."""

    SPREAD = "spread"
    """The one that has the fewest of them: the loss of a node costs a group the least."""
    PACK = "pack"
    """The one that has most of them: the samples begin with the same prompt, which its engine has cached."""


class ControlSettings(BaseModel):
    """`directory` takes results and traces.

    `max_waiting` sessions may wait for a place; a task that would make it more is refused, to be submitted again after
    `retry_after` seconds. A node whose engine is fuller than `max_pressure` (0 to 1) gets no session.
    A node that gives no answer for `node_timeout` seconds is lost. A sample is begun up to `max_attempts` times, and
    moved up to `max_moves` times before it has begun. A node is asked every `report_wait` seconds at least.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    directory: Path
    max_waiting: Count = 10_000
    retry_after: Seconds = 5.0
    max_pressure: Annotated[float, Field(gt=0, le=1)] = 0.95
    group_placement: GroupPlacement = GroupPlacement.SPREAD
    lost_sessions: LostSessions = LostSessions.RETRY
    max_attempts: Count = 2
    max_moves: Count = 10
    node_timeout: Seconds = 60.0
    report_wait: Annotated[float, Field(gt=0, le=60)] = 5.0  # no longer than a node's own limit
    call_timeout: Seconds = 30.0
    retry_first: Seconds = 0.2
    retry_most: Seconds = 5.0
