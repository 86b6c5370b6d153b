# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions that wait for a place: the highest priority first, then the oldest task, then the lowest sample."""

from __future__ import annotations

import heapq
from collections import Counter

from nemo_gym_polar.rollouts.control.records import SessionRecord, TaskRecord

Key = tuple[int, float, str, int]
SLACK = 64  # discarded places that may lie in the heap besides as many as wait


class Queue:
    def __init__(self) -> None:
        self._heap: list[tuple[Key, str]] = []
        self._keys: dict[str, Key] = {}

    def add(self, session: SessionRecord, task: TaskRecord) -> None:
        priority = task.request.dispatch_priority if task.request else 0
        key = (-priority, task.created, task.task_id, session.sample)
        self._keys[session.session_id] = key
        heapq.heappush(self._heap, (key, session.session_id))

    def discard(self, session_id: str) -> None:
        """Its place in the heap is dropped when it comes to the top, or when there are many of them."""
        self._keys.pop(session_id, None)
        if len(self._heap) > 2 * len(self._keys) + SLACK:
            self._heap = [(key, name) for name, key in self._keys.items()]
            heapq.heapify(self._heap)

    def first(self, number: int) -> list[str]:
        """The sessions whose turn it is, up to `number` of them. They stay in the queue until they are discarded."""
        found: dict[str, Key] = {}
        while self._heap and len(found) < number:
            key, session_id = heapq.heappop(self._heap)
            if self._keys.get(session_id) == key:
                found[session_id] = key
        for session_id, key in found.items():
            heapq.heappush(self._heap, (key, session_id))
        return list(found)

    def by_priority(self) -> dict[int, int]:
        return dict(sorted(Counter(-key[0] for key in self._keys.values()).items(), reverse=True))

    def __len__(self) -> int:
        return len(self._keys)
