# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Score a session by a shell command in the sandbox that the harness left behind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.evaluators.base import Evaluation, EvaluatorError, Score
from nemo_gym_polar.runtimes.base import Exit

SHOWN = 2000  # bytes of each stream that a result keeps


class CommandConfig(BaseModel):
    """`score: exit_code` gives 1.0 for exit 0, else 0.0; `score: stdout` reads a number on the last line of output.

    `files` (path → text, relative to the workspace) are written after the harness ended, over what it left there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[str, Field(min_length=1)]
    score: Literal["exit_code", "stdout"] = "exit_code"
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    env: dict[str, str] = {}
    files: dict[str, str] = {}


class CommandEvaluator:
    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = CommandConfig(**config)

    async def evaluate(self, evaluation: Evaluation) -> Score:
        """Raises `EvaluatorError` if there is no score to read, `SandboxError` if the sandbox is gone."""
        for path, text in self.config.files.items():
            await evaluation.runtime.write(str(PurePosixPath(evaluation.runtime.workspace, path)), text.encode())
        seconds = min(self.config.timeout_seconds, evaluation.seconds_left)
        ended = await evaluation.runtime.run(["bash", "-c", self.config.command], env=self.config.env, timeout=seconds)
        if ended.code is None:
            why = f"took longer than {seconds:.0f} s" if ended.timed_out else f"was killed for {ended.killed_for}"
            raise EvaluatorError(f"evaluator.config.command {why}")
        return Score(self.reward(ended), detail=detail(ended))

    def reward(self, ended: Exit) -> float:
        if self.config.score == "exit_code":
            return 1.0 if ended.code == 0 else 0.0
        return last_number(ended.stdout.decode(errors="replace"))


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
