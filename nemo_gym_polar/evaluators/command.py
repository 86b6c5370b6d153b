# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Score a session by a shell command in the sandbox that the harness left behind, or in a fresh one."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.evaluators.base import Carry, Evaluation, EvaluatorError, EvaluatorTimeoutError, Score
from nemo_gym_polar.evaluators.carrying import carry_patch, carry_workspace
from nemo_gym_polar.runtimes.base import Exit

SHOWN = 2000  # bytes of each stream that a result keeps


class CommandConfig(BaseModel):
    """`score: exit_code` gives 1.0 for exit 0, else 0.0; `score: stdout` reads a number on the last line of output.

    `files` (path → text, relative to the workspace) are written after the harness ended, over what it left there.
    `carry` says what goes over into a fresh sandbox, if the task has one: the workspace, or a `git diff` of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[str, Field(min_length=1)]
    score: Literal["exit_code", "stdout"] = "exit_code"
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    carry: Literal["workspace", "patch"] = "workspace"


class CommandEvaluator:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = CommandConfig(**config)

    @property
    def carry(self) -> Carry:
        return self.config.carry

    async def evaluate(self, evaluation: Evaluation) -> Score:
        """Raises `EvaluatorError` if there is no score to read, `SandboxError` if the sandbox is gone."""
        until = time.monotonic() + evaluation.seconds_left
        runtime = evaluation.runtime
        carried = await self.take_over(evaluation)
        for path, text in self.config.files.items():
            await runtime.write(str(PurePosixPath(runtime.workspace, path)), text.encode())
        seconds = max(0.0, min(self.config.timeout_seconds, until - time.monotonic()))
        env = {**evaluation.env, **self.config.env}
        ended = await runtime.run(["bash", "-c", self.config.command], env=env, timeout=seconds)
        return Score(self.reward(finished(ended, seconds)), detail={**detail(ended), **carried})

    async def take_over(self, evaluation: Evaluation) -> dict[str, Any]:
        harness, fresh, seconds = evaluation.harness_runtime, evaluation.runtime, evaluation.seconds_left
        if harness is None:
            return {}
        if self.config.carry == "workspace":
            await carry_workspace(harness, fresh, seconds)
            return {"carried": "workspace"}
        return {"carried": "patch", "patch_bytes": await carry_patch(harness, fresh, fresh.workspace, seconds)}

    def reward(self, ended: Exit) -> float:
        if self.config.score == "exit_code":
            return 1.0 if ended.code == 0 else 0.0
        return last_number(ended.stdout.decode(errors="replace"))


def finished(ended: Exit, seconds: float) -> Exit:
    if ended.timed_out:
        raise EvaluatorTimeoutError(f"evaluator.config.command took longer than {seconds:.0f} s")
    if ended.code is None:
        raise EvaluatorError(f"evaluator.config.command was killed for {ended.killed_for}")
    return ended


def last_number(output: str) -> float:
    lines = output.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    try:
        value = float(last)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise EvaluatorError(f"evaluator.config.command must print a finite number on its last line, not {last[:80]!r}")
    return value


def detail(ended: Exit) -> dict[str, Any]:
    streams = {"stdout": ended.stdout, "stderr": ended.stderr}
    shown = {name: data[-SHOWN:].decode(errors="replace") for name, data in streams.items()}
    return {"exit_code": ended.code, "seconds": round(ended.seconds, 3), **shown}
