# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a harness: unknown or bad ones are refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from nemo_gym_polar.harnesses.base import HarnessError


class HarnessSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def read[S: HarnessSettings](kind: type[S], settings: Mapping[str, Any]) -> S:
    try:
        return kind(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        known = ", ".join(kind.model_fields)
        raise HarnessError(f"agent.settings.{field}={first['input']!r}: {first['msg']} (known: {known})") from None
