# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A task with its parts found and checked, so that a wrong name fails once and not once per session."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath

from nemo_gym_polar.evaluators.base import Evaluator, EvaluatorError
from nemo_gym_polar.evaluators.registry import make_evaluator
from nemo_gym_polar.forest.builders import Options, resolve
from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.harnesses.base import Harness, HarnessContext, HarnessError
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.rollouts.actions import Actions, within
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.sources import OpenSession
from nemo_gym_polar.rollouts.task import RuntimeSpec, TaskRequest
from nemo_gym_polar.rollouts.task import agent_timeout as own_timeout
from nemo_gym_polar.runtimes.base import Needs, Runtime, SandboxError
from nemo_gym_polar.runtimes.bubblewrap import WORKSPACE
from nemo_gym_polar.runtimes.registry import check_runtime, make_runtime


@dataclass(frozen=True, slots=True)
class Plan:
    request: TaskRequest
    harness: Harness
    evaluator: Evaluator
    agent_timeout: float | None
    prepare: Actions
    eval_prepare: Actions

    @property
    def priority(self) -> int:
        return self.request.dispatch_priority

    @property
    def refreshes(self) -> bool:
        """Is the score taken in a sandbox of the evaluator's own?"""
        return self.request.evaluator.refresh_runtime and self.evaluator.carry != "nothing"

    def runtime(self, session: OpenSession) -> Runtime:
        spec = self.request.runtime
        return make_runtime(spec.backend, session.address, self.harness.mounts(), spec.settings, needs(spec))

    def evaluator_runtime(self) -> Runtime:
        """Without the harness's programs and without a way to the gateway."""
        spec = self.request.runtime
        return make_runtime(spec.backend, None, (), spec.settings, needs(spec))

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


def make_plan(request: TaskRequest, agent_timeout: float | None = None, assets: Path | None = None) -> Plan:
    """Raises `RolloutError` for whatever would make every session of the task fail."""
    try:
        check_spec(request.runtime)
        Options.parse(request.builder.config)
        resolve(request.builder.strategy)
        harness = make_harness(request.agent.harness, request.agent.settings)
        evaluator = make_evaluator(request.evaluator.strategy, request.evaluator.config)
        seconds = own_timeout(request.metadata) or agent_timeout
        plan = Plan(request, harness, evaluator, seconds, *actions(request.runtime, assets))
        check_actions(plan)
    except (SandboxError, BuilderError, HarnessError, EvaluatorError, ValueError) as error:
        raise RolloutError(f"task {request.task_id}: {error}") from error
    return plan


def needs(spec: RuntimeSpec) -> Needs:
    """In the runtimes' own words."""
    return Needs(**{item.name: getattr(spec, item.name) for item in fields(Needs)})


def check_spec(spec: RuntimeSpec) -> None:
    if spec.import_path:
        raise SandboxError(
            f"runtime.import_path={spec.import_path!r}: only the backends by name are known here; drop it"
        )
    if spec.kwargs:
        raise SandboxError(f"runtime.kwargs={spec.kwargs!r}: the backends here take none; see runtime.settings")
    check_runtime(spec.backend, spec.settings, needs(spec))


def actions(spec: RuntimeSpec, assets: Path | None) -> tuple[Actions, Actions]:
    """What makes the harness's sandbox ready and what the evaluator's own."""
    prepare = Actions("prepare", spec.prepare, assets)
    return prepare, prepare if spec.eval_prepare is None else Actions("eval_prepare", spec.eval_prepare, assets)


def check_actions(plan: Plan) -> None:
    plan.prepare.check()
    if plan.refreshes:
        plan.eval_prepare.check()
        check_lost(plan)


def check_lost(plan: Plan) -> None:
    """A grader's files must not be put where the harness's workspace comes to lie."""
    if plan.evaluator.carry != "workspace" or plan.eval_prepare is plan.prepare:
        return
    workspace = plan.request.runtime.workdir or WORKSPACE
    for number, step in enumerate(plan.eval_prepare.steps):
        if step.target and within(step.target, workspace):
            raise SandboxError(
                f"runtime.eval_prepare[{number}].target={step.target!r} lies in the workspace, which the harness's own "
                "replaces: use evaluator.config.files, or a path outside"
            )
