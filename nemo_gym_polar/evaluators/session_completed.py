# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Score a session by how its harness ended, whatever it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from nemo_gym_polar.evaluators.base import Carry, Evaluation, Score


class SessionCompletedConfig(BaseModel):
    """No settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SessionCompletedEvaluator:
    carry: Carry = "nothing"

    def __init__(self, config: Mapping[str, Any]) -> None:
        SessionCompletedConfig(**config)

    async def evaluate(self, evaluation: Evaluation) -> Score:
        return Score(1.0 if evaluation.harness_status == "completed" else 0.0)
