# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of a session whose node is lost. Pure."""

from __future__ import annotations

import time
import uuid
from typing import Any

from nemo_gym_polar.rollouts.control.records import SessionRecord
from nemo_gym_polar.rollouts.control.settings import ControlSettings, LostSessions
from nemo_gym_polar.rollouts.task import SessionStatus


def after_loss(
    record: SessionRecord, reason: str, settings: ControlSettings
) -> tuple[SessionRecord, SessionRecord | None]:
    """The attempt that was given up, and the one that takes its place, if one does."""
    if record.cancelling:
        return given_up(record, reason, SessionStatus.CANCELLED, error=record.cancelling), None
    begun = record.status is not SessionStatus.QUEUED
    refusal = why_not_again(record, begun, settings)
    if refusal:
        return given_up(record, reason, SessionStatus.ERROR, error=f"{reason}; {refusal}"), None
    status = SessionStatus.ERROR if begun else SessionStatus.CANCELLED
    return given_up(record, reason, status, error=reason, current=False), next_attempt(record, begun)


def why_not_again(record: SessionRecord, begun: bool, settings: ControlSettings) -> str | None:
    if not begun:
        return f"it was moved {settings.max_moves} times" if record.moves >= settings.max_moves else None
    if settings.lost_sessions is LostSessions.REPORT:
        return "lost_sessions=report, so it is not tried again"
    spent = record.attempt >= settings.max_attempts
    return f"that was attempt {record.attempt} of {settings.max_attempts}" if spent else None


def given_up(record: SessionRecord, reason: str, status: SessionStatus, **fields: Any) -> SessionRecord:
    return record.model_copy(update={"status": status, "lost": reason, "updated": time.time(), **fields})


def next_attempt(record: SessionRecord, begun: bool) -> SessionRecord:
    """With an id of its own: what the lost one left behind, or still does, is never mixed with it."""
    now = time.time()
    return SessionRecord(
        session_id=new_session_id(),
        task_id=record.task_id,
        sample=record.sample,
        attempt=record.attempt + begun,
        status=SessionStatus.QUEUED,
        created=now,
        updated=now,
        moves=record.moves + (not begun),
    )


def new_session_id() -> str:
    return uuid.uuid4().hex
