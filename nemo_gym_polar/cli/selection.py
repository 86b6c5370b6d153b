# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which recorded sessions a command takes, and why it leaves the others out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nemo_gym_polar.rollouts.recorded import RecordedSession


@dataclass(slots=True)
class Filter:
    """Which sessions are wanted; `left_out` counts the others by reason, `taken` those that passed."""

    statuses: frozenset[str] = frozenset()
    min_reward: float | None = None
    tasks: frozenset[str] = frozenset()
    taken: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def wanted(self, found: Iterable[RecordedSession]) -> Iterator[RecordedSession]:
        for session in found:
            if why := self._why_not(session):
                self.left_out[why] += 1
            else:
                self.taken += 1
                yield session

    def drop(self, why: str) -> None:
        """A session that passed has something that its format can't say."""
        self.left_out[why] += 1

    def _why_not(self, session: RecordedSession) -> str | None:
        if not session.session_id:
            return "journal without a session"
        if self.tasks and session.task_id not in self.tasks:
            return "another task"
        if self.statuses and session.status not in self.statuses:
            return f"status {session.status or 'unknown'}"
        if self.min_reward is None or (session.reward is not None and session.reward >= self.min_reward):
            return None
        return "no reward" if session.reward is None else f"reward below {self.min_reward:g}"


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {why}" for why, number in sorted(counts.items()))
