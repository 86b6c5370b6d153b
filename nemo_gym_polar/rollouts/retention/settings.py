# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How long tasks are kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Bounds(BaseModel):
    """Ended tasks are removed `keep_days` after their end, and but for the newest `keep_tasks` of them. None: no bound.

    `journals`: the journals in the service's own directory go with them. `given_up_callbacks`: so do tasks of which a
    callback was given up; a callback that is still to be made keeps its task in any case.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_days: Annotated[float, Field(gt=0, le=36500)] | None = None
    keep_tasks: Annotated[int, Field(ge=0, le=10**9)] | None = None
    journals: bool = False
    given_up_callbacks: bool = False

    @property
    def bounded(self) -> bool:
        return self.keep_days is not None or self.keep_tasks is not None


class RetentionSettings(Bounds):
    """What is beyond the bounds is looked for every `every` seconds; without a bound everything is kept."""

    every: Annotated[float, Field(gt=0)] = 3600.0
