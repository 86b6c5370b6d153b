# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Score a session by which tests a command says have passed: 1.0 if they are exactly those that were expected."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Json

from nemo_gym_polar.evaluators.base import Carry, Evaluation, EvaluatorError, EvaluatorTimeoutError, Score
from nemo_gym_polar.evaluators.carrying import carry_patch
from nemo_gym_polar.evaluators.command import SHOWN
from nemo_gym_polar.runtimes.base import Exit, Runtime

LINE = re.compile(r"^(PASSED|FAILED)[ \t]+(\S.*?)(?:[ \t]+-[ \t].*)?\s*$", re.MULTILINE)
NAMED = 20  # tests that a result names

Verdict = Literal["PASSED", "FAILED"]
Verdicts = dict[str, Verdict]
Seconds = Annotated[float, Field(gt=0)]


class OutputConfig(BaseModel):
    """`test_command` prints lines as `PASSED name` and `FAILED name - why`, as `pytest -rA` does; what else it prints
    and its exit code don't matter. `expected_output_json` has the verdict of each test by name, an object or its text.

    `repo_dir` is where the command runs: the workspace, or a path in it. Into a fresh sandbox goes what `patch_command`
    prints there, by itself a `git diff` without the paths of `exclude_patterns`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    test_command: Annotated[str, Field(min_length=1)]
    expected_output_json: Annotated[Verdicts, Field(min_length=1)] | Json[Verdicts]
    repo_dir: str = "."
    patch_command: str | None = None
    exclude_patterns: tuple[str, ...] = ()
    test_timeout: Seconds = 1200.0
    apply_timeout: Seconds = 60.0


class OutputEvaluator:
    carry: Carry = "patch"

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = OutputConfig(**config)

    async def evaluate(self, evaluation: Evaluation) -> Score:
        """Raises `EvaluatorError` if the patch doesn't apply or the tests take too long."""
        until = time.monotonic() + evaluation.seconds_left
        runtime, config = evaluation.runtime, self.config
        directory = str(PurePosixPath(runtime.workspace, config.repo_dir))
        detail: dict[str, Any] = {}
        if evaluation.harness_runtime:
            detail["patch_bytes"] = await self.take_over(evaluation.harness_runtime, evaluation)
        seconds = max(0.0, min(config.test_timeout, until - time.monotonic()))
        ended, output = await self.test(runtime, directory, evaluation.env, seconds)
        return self.score(verdicts(output), {**detail, "exit_code": ended.code, "stdout": output[-SHOWN:]})

    async def take_over(self, harness: Runtime, evaluation: Evaluation) -> int:
        config, fresh = self.config, evaluation.runtime
        directory = str(PurePosixPath(fresh.workspace, config.repo_dir))
        seconds = min(config.apply_timeout, evaluation.seconds_left)
        exclude, command = config.exclude_patterns, config.patch_command
        return await carry_patch(harness, fresh, directory, seconds, exclude=exclude, command=command)

    async def test(self, runtime: Runtime, directory: str, env: Mapping[str, str], seconds: float) -> tuple[Exit, str]:
        """How the command ended, and all that it printed."""
        with tempfile.TemporaryDirectory(prefix="polar-tests-") as kept:
            log = Path(kept, "output")
            argv = ["bash", "-c", self.config.test_command]
            ended = await runtime.run(argv, env=env, cwd=directory, timeout=seconds, log=log)
            if ended.timed_out:
                raise EvaluatorTimeoutError(f"evaluator.config.test_command took longer than {seconds:.0f} s")
            if ended.killed_for:
                raise EvaluatorError(f"evaluator.config.test_command was killed for {ended.killed_for}")
            return ended, await asyncio.to_thread(log.read_text, errors="replace")

    def score(self, found: Verdicts, detail: Mapping[str, Any]) -> Score:
        expected = self.config.expected_output_json
        wrong = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        about = {"tests": len(found), "wrong": len(wrong), "wrong_tests": wrong[:NAMED]}
        return Score(0.0 if wrong else 1.0, detail={**detail, **about})


def verdicts(output: str) -> Verdicts:
    """A test that failed once has failed."""
    found: Verdicts = {}
    for line in LINE.finditer(output):
        name = line[2]
        passed = line[1] == "PASSED" and found.get(name) != "FAILED"
        found[name] = "PASSED" if passed else "FAILED"
    return found
