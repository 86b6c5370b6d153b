# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A task with its parts found and checked, so that a wrong name fails once and not once per session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from nemo_gym_polar.evaluators.base import Evaluator, EvaluatorError
from nemo_gym_polar.evaluators.registry import make_evaluator
from nemo_gym_polar.forest.builders import Options, resolve
from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.harnesses.base import Harness, HarnessContext, HarnessError
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.sources import OpenSession
from nemo_gym_polar.rollouts.task import TaskRequest
from nemo_gym_polar.rollouts.task import agent_timeout as own_timeout
from nemo_gym_polar.runtimes.base import Runtime, SandboxError
from nemo_gym_polar.runtimes.registry import check_runtime, make_runtime


@dataclass(frozen=True, slots=True)
class Plan:
    request: TaskRequest
    harness: Harness
    evaluator: Evaluator
    agent_timeout: float | None

    def runtime(self, session: OpenSession) -> Runtime:
        spec = self.request.runtime
        return make_runtime(spec.backend, session.address, self.harness.mounts(), spec.settings)

    def files(self, runtime: Runtime) -> dict[str, bytes]:
        """The task's files by their path inside; relative ones belong to the workspace."""
        given = self.request.runtime.files
        return {str(PurePosixPath(runtime.workspace, path)): text.encode() for path, text in given.items()}

    def context(self, session: OpenSession, runtime: Runtime) -> HarnessContext:
        return HarnessContext(
            instruction=self.request.instruction,
            base_url=runtime.gateway_url + session.path,
            secret=session.secret,
            model=session.model,
            home=runtime.home,
            workspace=runtime.workspace,
            context_tokens=session.context_tokens,
            max_tokens=session.max_tokens,
        )


def make_plan(request: TaskRequest, agent_timeout: float | None = None) -> Plan:
    """Raises `RolloutError` for whatever would make every session of the task fail."""
    try:
        check_runtime(request.runtime.backend, request.runtime.settings)
        Options.parse(request.builder.config)
        resolve(request.builder.strategy)
        harness = make_harness(request.agent.harness, request.agent.settings)
        evaluator = make_evaluator(request.evaluator.strategy, request.evaluator.config)
        seconds = own_timeout(request.metadata) or agent_timeout
    except (SandboxError, BuilderError, HarnessError, EvaluatorError, ValueError) as error:
        raise RolloutError(f"task {request.task_id}: {error}") from error
    return Plan(request, harness, evaluator, seconds)
