# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluators by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from nemo_gym_polar.evaluators.base import Evaluator, EvaluatorError
from nemo_gym_polar.evaluators.command import CommandEvaluator
from nemo_gym_polar.evaluators.output import OutputEvaluator
from nemo_gym_polar.evaluators.session_completed import SessionCompletedEvaluator

EVALUATORS: dict[str, Callable[[Mapping[str, Any]], Evaluator]] = {
    "command": CommandEvaluator,
    "session_completed": SessionCompletedEvaluator,
    "test_on_output": OutputEvaluator,
}


def make_evaluator(strategy: str, config: Mapping[str, Any] | None = None) -> Evaluator:
    if strategy not in EVALUATORS:
        known = ", ".join(sorted(EVALUATORS))
        raise EvaluatorError(f"evaluator.strategy={strategy!r} is unknown: choose one of {known}")
    try:
        return EVALUATORS[strategy](config or {})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise EvaluatorError(f"evaluator.config.{field}={first['input']!r}: {first['msg']}") from None
