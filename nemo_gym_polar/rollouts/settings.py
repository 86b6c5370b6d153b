# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How many sessions run at once, for how long, and what becomes of those that did not end well."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.dialects.base import WhenExhausted

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class PartialRule(StrEnum):
    """What to make of a session that was cut short or failed."""

    TRAIN = "train"
    """Score what is there and train on it."""
    ZERO = "zero"
    """Train on it with reward 0."""
    MASK = "mask"
    """Keep traces and score, but no token in the loss."""


class RolloutSettings(BaseModel):
    """`directory` takes results, traces and harness logs.

    A session holds one of `run_workers` while its harness runs; up to `ready_buffer` more wait with a warm sandbox.
    `prewarm_workers` make evaluators' own sandboxes. Tasks may upload from the directory `assets`, and only from there.
    `agent_timeout` bounds the harness inside the task's own deadline; `postrun_grace` is what scoring gets at least,
    past the deadline if need be. Budgets per session (None: no limit): `max_turns` model calls, tokens generated,
    tokens that one call reads or that all read, `max_calls` at a time; `when_exhausted` as the gateway has it.
    `keep_messages`: traces come with what was said in them, as chat messages.
    A node that has less than `min_free_disk` bytes left for journals takes no session.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    directory: Path
    init_workers: Count = 2
    ready_buffer: Annotated[int, Field(ge=0)] = 2
    run_workers: Count = 4
    postrun_workers: Count = 2
    prewarm_workers: Count = 2
    agent_timeout: Seconds | None = None
    postrun_grace: Seconds = 60.0
    max_turns: Count | None = None
    max_generated_tokens: Count | None = None
    max_context_tokens: Count | None = None
    max_read_tokens: Count | None = None
    max_calls: Count | None = None
    when_exhausted: WhenExhausted | None = None
    timeout_runs: PartialRule = PartialRule.TRAIN
    failed_runs: PartialRule = PartialRule.MASK
    unscored_runs: Literal[PartialRule.ZERO, PartialRule.MASK] = PartialRule.MASK
    keep_messages: bool = True
    assets: Path | None = None
    min_free_disk: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
