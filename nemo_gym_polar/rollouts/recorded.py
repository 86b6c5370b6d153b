# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions as they lie on disk: the tokens in the journal, how it ended and what it was worth in `result.json`.

A build of a recorded session is scored as its rollout was: with the evaluator's reward, and with nothing in the loss
where the rollout's rule for sessions that did not end well took everything out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from nemo_gym_polar.forest.builders import Build, build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.journal import Recovered, recover
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.rollouts import scoring
from nemo_gym_polar.rollouts.errors import RolloutError


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """`result` is empty where no rollout wrote one, as for a session of `polar serve`."""

    journal: Path
    recovered: Recovered
    result: Mapping[str, Any] = field(default_factory=dict)

    @property
    def forest(self) -> Forest:
        return self.recovered.forest

    @property
    def session_id(self) -> str:
        return self.forest.session_id

    @property
    def task_id(self) -> str | None:
        return self.result.get("task_id") or self.recovered.metadata.get("task_id")

    @property
    def sample(self) -> int | None:
        sample: int | None = self.result.get("sample", self.recovered.metadata.get("sample"))
        return sample

    @property
    def status(self) -> str | None:
        return self.result.get("status")

    @property
    def reward(self) -> float | None:
        return self.result.get("reward")

    @property
    def about(self) -> dict[str, Any]:
        """What a row of this session says besides its tokens."""
        return {"task_id": self.task_id, "sample": self.sample, "status": self.status}

    def build(self, strategy: str, config: Mapping[str, Any]) -> Build:
        """Scored traces. Raises `BuilderError` for a builder or a setting that makes no sense."""
        made = build(self.forest, strategy, config)
        for trace, reward in zip(made.traces, self._rewards(made.traces), strict=True):
            trace.reward, trace.group = reward, self.task_id
        if scoring.MASKED in self.result.get("dropped", {}):
            scoring.mask(made.traces, made.dropped)
        return made

    def _rewards(self, traces: Sequence[Trace]) -> list[float | None]:
        """Each trace its own reward if these are the traces that were scored, else the session's to all."""
        scored = self.result.get("traces", ())
        if [(one["kind"], one["tokens"]) for one in scored] == [(trace.kind, len(trace)) for trace in traces]:
            return [one["reward"] for one in scored]
        return [self.reward] * len(traces)


def read_session(journal: Path) -> RecordedSession:
    """All that is whole. Raises `JournalFormatError` for no journal, `RolloutError` for no result."""
    recovered = recover(journal)
    path = journal.parent.parent / "sessions" / recovered.forest.session_id / "result.json"
    return RecordedSession(journal, recovered, _result(path) if recovered.forest.session_id else {})


def _result(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = orjson.loads(path.read_bytes())
    except ValueError as error:
        raise RolloutError(f"{path} is not JSON ({error}); remove it to read the session without its reward") from error
    if not isinstance(found, dict):
        raise RolloutError(f"{path} holds no JSON object; remove it to read the session without its reward")
    return found
