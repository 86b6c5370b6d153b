# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What follows for a task from how its samples stand: counters, early stop, its end. Pure functions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from nemo_gym_polar.rollouts.control.records import SessionRecord, TaskRecord, TaskState
from nemo_gym_polar.rollouts.first_prompt import odd_ones
from nemo_gym_polar.rollouts.task import EarlyStop, SessionResult, SessionStatus, TaskRequest

EARLY_STOP = "early stop: the group is complete"


@dataclass(slots=True)
class Settled:
    """The task as it is now, and its sessions that change with it."""

    task: TaskRecord
    sessions: list[SessionRecord] = field(default_factory=list)


def settle(task: TaskRecord, samples: Mapping[int, SessionRecord]) -> Settled:
    """`samples` has the current attempt at every sample."""
    stopped: list[SessionRecord] = []
    selected = task.selected_samples
    if task.state is TaskState.RUNNING and selected is None and task.request:
        selected = selection(task.request, samples)
        if selected is not None:
            stopped = [cancelled(record, EARLY_STOP) for record in samples.values() if not record.status.final]
    now = {**samples, **{record.sample: record for record in stopped}}
    counted = {
        "ended_sessions": sum(record.status.final for record in now.values()),
        "usable_sessions": sum(record.usable for record in now.values()),
    }
    changed = task.model_copy(update={**counted, "selected_samples": selected})
    return Settled(finished(changed, now), stopped)


def finished(task: TaskRecord, samples: Mapping[int, SessionRecord]) -> TaskRecord:
    if task.ended is not None or task.ended_sessions < task.total_sessions:
        return task
    prompts = {sample: record.first_prompt for sample, record in sorted(samples.items())}
    ended = {"ended": time.time(), "first_prompt_mismatches": odd_ones(prompts) or None}
    if task.state is TaskState.CANCELLING:
        return task.model_copy(update={**ended, "state": TaskState.CANCELLED})
    if task.usable_sessions:
        return task.model_copy(update={**ended, "state": TaskState.COMPLETED})
    errors = (f"sample {sample}: {record.error}" for sample, record in sorted(samples.items()) if record.error)
    return task.model_copy(update={**ended, "state": TaskState.FAILED, "error": next(errors, None)})


def selection(request: TaskRequest, samples: Mapping[int, SessionRecord]) -> list[int] | None:
    """The samples that make the group complete, None while it isn't."""
    wanted = request.early_stop_min_usable_sessions
    if wanted is None:
        return None
    chosen: list[int] = []
    for sample, record in sorted(samples.items()):
        if request.early_stop is EarlyStop.IN_ORDER and not record.status.final:
            return None  # whether this one counts is not known, and no later one counts before it
        if record.usable:
            chosen.append(sample)
        if len(chosen) == wanted:
            return chosen
    return None


def cancelled(record: SessionRecord, reason: str) -> SessionRecord:
    """To be cancelled at its node; or at its end, if no node has it."""
    update = {"cancelling": record.cancelling or reason, "updated": time.time()}
    if record.node_id is None:
        update |= {"status": SessionStatus.CANCELLED, "error": reason}
    return record.model_copy(update=update)


def is_usable(result: SessionResult) -> bool:
    if result.status is SessionStatus.CANCELLED:
        return False
    return result.status is SessionStatus.COMPLETED or any(trace.trained_tokens for trace in result.traces)
