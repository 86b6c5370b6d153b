# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One problem as a row of a task set."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, field_validator

from nemo_gym_polar.rollouts.task import AgentSpec, BuilderSpec, EvaluatorSpec, RuntimeSpec, Spec, TaskRequest

Split = Literal["train", "heldout"]


class TaskRow(Spec):
    """What the harness is told, the files it finds, and how the outcome is scored.

    `files` maps paths relative to the workspace to their text. Rows of the split `heldout` are never trained on.
    """

    task_id: Annotated[str, Field(min_length=1)]
    instruction: Annotated[str, Field(min_length=1)]
    files: dict[str, str] = Field(default_factory=dict)
    evaluator: EvaluatorSpec
    split: Split = "train"

    @field_validator("files")
    @classmethod
    def _inside_the_workspace(cls, files: dict[str, str]) -> dict[str, str]:
        for path in files:
            parts = PurePosixPath(path)
            if parts.is_absolute() or ".." in parts.parts or not parts.parts:
                raise ValueError(f"{path!r} does not lie in the workspace; give a relative path without '..'")
        return files

    def request(
        self,
        *,
        num_samples: int = 1,
        timeout_seconds: float = 600.0,
        agent: AgentSpec | None = None,
        runtime: RuntimeSpec | None = None,
        builder: BuilderSpec | None = None,
    ) -> TaskRequest:
        """This problem as a request for `num_samples` sessions; its files join those of `runtime`."""
        room = runtime or RuntimeSpec()
        return TaskRequest(
            task_id=self.task_id,
            instruction=self.instruction,
            num_samples=num_samples,
            timeout_seconds=timeout_seconds,
            agent=agent or AgentSpec(),
            runtime=room.model_copy(update={"files": {**room.files, **self.files}}),
            builder=builder or BuilderSpec(),
            evaluator=self.evaluator,
            metadata={"split": self.split},
        )
