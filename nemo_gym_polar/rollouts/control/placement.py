# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which node gets the next session. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from nemo_gym_polar.rollouts.control.records import SessionRecord
from nemo_gym_polar.rollouts.control.settings import GroupPlacement


@dataclass(slots=True)
class Places:
    """Free places by node, and how many sessions of each task a node has."""

    free: dict[str, int]
    pressure: Mapping[str, float | None] = field(default_factory=dict)
    tasks: dict[str, Counter[str]] = field(default_factory=dict)

    def take(self, task_id: str, rule: GroupPlacement) -> str | None:
        """The node for one more session of this task, None if there is no place."""
        nodes = [node for node, free in self.free.items() if free > 0]
        if not nodes:
            return None
        sign = -1 if rule is GroupPlacement.PACK else 1
        best = min(
            nodes,
            key=lambda node: (
                sign * self.tasks.get(node, Counter())[task_id],
                self.pressure.get(node) or 0.0,
                -self.free[node],
                node,
            ),
        )
        self.free[best] -= 1
        self.tasks.setdefault(best, Counter())[task_id] += 1
        return best


def tasks_by_node(placed: Mapping[str, Mapping[str, SessionRecord]]) -> dict[str, Counter[str]]:
    return {node: Counter(record.task_id for record in records.values()) for node, records in placed.items()}
