# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What `config.yaml` says about the two servers, checked when they start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from nemo_gym_polar.engines.factory import EngineSettings
from nemo_gym_polar.gateway.settings import GatewaySettings, Positive, SamplingProfile, Seconds
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.task import TaskRequest


def state_directory() -> Path:
    """$XDG_STATE_HOME/nemo-gym-polar/gym: a server's working directory lies in site-packages, so it is no choice."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "nemo-gym-polar" / "gym"


def _absolute(field: str, directory: str | Path | None) -> Path:
    if directory is None:
        return state_directory()
    if not Path(directory).is_absolute():
        raise ValueError(f"{field}={str(directory)!r} is relative to the server's own directory: give a whole path")
    return Path(directory)


def _one_process(workers: int | None) -> int | None:
    if workers is not None and workers > 1:
        raise ValueError(f"num_workers={workers}: sessions live in one process; leave it out, or start a second server")
    return workers


class ResourcesSettings(BaseModel):
    """The gateway behind a resources server. `directory` holds the journals and must be absolute.

    `placeholder` asks for one token where a rollout gave none, so that a NeMo RL batch survives it; the result is
    flagged, so it is not trained on where flags are honoured.
    """

    engine: EngineSettings
    sampling: SamplingProfile = SamplingProfile()
    context_tokens: Positive = 32768
    directory: Path = Field(default_factory=state_directory)
    placeholder: bool = True
    num_workers: int | None = None

    _one_process = field_validator("num_workers")(_one_process)

    @field_validator("engine", mode="before")
    @classmethod
    def _one_url_is_a_list(cls, engine: Any) -> Any:
        """NeMo RL gives a list of engines, the `gym` command line one."""
        if isinstance(engine, dict) and isinstance(engine.get("urls"), str):
            return {**engine, "urls": (engine["urls"],)}
        return engine

    @field_validator("directory", mode="before")
    @classmethod
    def _absolute(cls, directory: Any) -> Any:
        return _absolute("directory", directory)

    def gateway(self) -> GatewaySettings:
        return GatewaySettings(
            journals=self.directory / "journals",
            sampling=self.sampling,
            context_tokens=self.context_tokens,
            models=(self.engine.model,),
        )


class AgentSettings(BaseModel):
    """`task` is what a row leaves open: any field of a task but its id and instruction.

    `resources_timeout` is how long the resources server may take for one answer, in seconds.
    """

    task: dict[str, Any] = {}
    resources_timeout: Seconds = 120.0
    rollouts: RolloutSettings = Field(default_factory=lambda: RolloutSettings(directory=state_directory()))
    num_workers: int | None = None

    _one_process = field_validator("num_workers")(_one_process)

    @field_validator("rollouts", mode="before")
    @classmethod
    def _absolute(cls, rollouts: Any) -> Any:
        if not isinstance(rollouts, dict):
            return rollouts
        return {**rollouts, "directory": _absolute("rollouts.directory", rollouts.get("directory"))}

    @field_validator("task")
    @classmethod
    def _is_a_task(cls, task: dict[str, Any]) -> dict[str, Any]:
        TaskRequest.model_validate({"task_id": "any", "instruction": "any", **task})
        return task
