# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What a task asks for and nobody here can give: refused when it is submitted, never when it runs.

What depends on a node's own machine, such as a directory to upload, is found there.
"""

from __future__ import annotations

from dataclasses import fields

from nemo_gym_polar.evaluators.base import EvaluatorError
from nemo_gym_polar.evaluators.registry import make_evaluator
from nemo_gym_polar.forest.builders import Options, resolve
from nemo_gym_polar.forest.errors import BuilderError
from nemo_gym_polar.harnesses.base import HarnessError
from nemo_gym_polar.harnesses.registry import make_harness
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.specs import RuntimeSpec
from nemo_gym_polar.rollouts.task import TaskRequest
from nemo_gym_polar.runtimes.base import Needs, SandboxError
from nemo_gym_polar.runtimes.registry import RUNTIMES, known, read_limits


def check_request(request: TaskRequest) -> None:
    """Raises `RolloutError` with one line that begins with the field."""
    try:
        check_runtime(request.runtime)
        Options.parse(request.builder.config)
        resolve(request.builder.strategy)
        make_harness(request.agent.harness, request.agent.settings)
        make_evaluator(request.evaluator.strategy, request.evaluator.config)
    except (SandboxError, BuilderError, HarnessError, EvaluatorError) as error:
        raise RolloutError(str(error)) from error


def check_runtime(runtime: RuntimeSpec) -> None:
    backend = RUNTIMES[known(runtime.backend)]
    needs = Needs(**{item.name: getattr(runtime, item.name) for item in fields(Needs)})
    backend.check(needs)
    read_limits(runtime.settings, needs)
    if runtime.import_path:
        raise SandboxError(f"runtime.import_path={runtime.import_path!r}: backends have names; give runtime.backend")
    if runtime.kwargs:
        raise SandboxError(f"runtime.kwargs={runtime.kwargs!r}: the {runtime.backend} backend takes none; drop it")
