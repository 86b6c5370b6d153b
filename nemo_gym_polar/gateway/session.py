# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A session: one harness run, its secret, its budget, its tokens and the calls that are in flight."""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
import uuid
from collections.abc import Mapping

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.dialects.base import CallError
from nemo_gym_polar.dialects.recall import Recall
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.forest.turn import Turn
from nemo_gym_polar.gateway.budget import Budget
from nemo_gym_polar.gateway.logs import NO_LABELS
from nemo_gym_polar.gateway.rate import Rate
from nemo_gym_polar.gateway.settings import SamplingProfile
from nemo_gym_polar.gateway.stored import StoredResponses

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def new_id() -> str:
    return uuid.uuid4().hex


def check_id(session_id: str) -> str:
    """Ids are part of paths and file names."""
    if not _ID.fullmatch(session_id):
        raise ValueError(f"session id {session_id!r} must be 1 to 128 letters, digits, '.', '_' or '-'")
    return session_id


class Call:
    """One model call in flight, answered by the task that makes this object. Once it is `committing`, it is finished
    rather than cancelled.

    Its answer's id and time (Unix seconds) are known from the start, for streams begin before the answer is there.
    Once its context is `rendered`, all that can be wrong with the request itself has been found. `gone`: the harness
    has left.
    """

    def __init__(self, id_prefix: str) -> None:
        self.response_id = id_prefix + secrets.token_hex(16)
        self.created = int(time.time())
        self.committing = False
        self.rendered = False
        self.cut: CallError | None = None
        self.turns: list[Turn] = []
        self.gone = False
        self.ended = asyncio.Event()
        self._task = asyncio.current_task()

    def cancel(self, reason: CallError | None = None) -> None:
        """Stop generating; the harness, if it is still there, is told the `reason`."""
        if self._task is not None and not self.committing and not self.ended.is_set():
            self.cut = self.cut or reason
            self._task.cancel()

    def leave(self) -> None:
        """Nobody waits for the answer any more."""
        self.gone = True
        self.cancel()


class Session:
    """Made by `Gateway.open`. `path` is where the harness's base URL points, below the gateway's own."""

    def __init__(
        self,
        session_id: str,
        recorder: Recorder,
        *,
        model: str,
        budget: Budget,
        profile: SamplingProfile,
        slots: int,
        labels: Mapping[str, str] = NO_LABELS,
        calls_per_minute: int | None = None,
    ) -> None:
        """`labels` go into log lines about this session."""
        self.id = session_id
        self.labels = {"session_id": session_id, **labels}
        self.secret = f"polar-{secrets.token_urlsafe(24)}"
        self.path = f"/s/{session_id}"
        self.model = model
        self.budget = budget
        self.profile = profile
        self.recorder = recorder
        self.slots = asyncio.Semaphore(slots)
        self.calls: set[Call] = set()
        self.stored = StoredResponses()
        self.rate = Rate(calls_per_minute, time.monotonic()) if calls_per_minute else None
        self.recall = Recall()

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    @property
    def forest(self) -> Forest:
        return self.recorder.forest

    def admits(self, key: str) -> bool:
        """Whether `key` is this session's secret; takes equally long for every wrong one."""
        return hmac.compare_digest(key.encode(), self.secret.encode())

    async def end_calls(self) -> int:
        """Cancel what is in flight and wait for it; the number of calls that were cut off."""
        cut = [call for call in self.calls if not call.committing]
        for call in cut:
            call.cancel(CallError("authentication", "The session has ended."))
        for call in list(self.calls):
            await call.ended.wait()
        return len(cut)


def sampling_profile(profile: SamplingProfile, override: Sampling | None) -> SamplingProfile:
    """The gateway's profile, with the values that this session samples with instead."""
    if override is None:
        return profile
    names = ("temperature", "top_p", "top_k", "max_tokens", "seed")
    given = {name: value for name in names if (value := getattr(override, name)) is not None}
    return profile.model_copy(update=given)
