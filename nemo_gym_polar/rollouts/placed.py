# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that are given without their directory, which follows from that of the process or node that they are for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel

from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.rollouts.settings import RolloutSettings


def checked(kind: type[BaseModel], placed: str, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `kind` whose field `placed` is the directory. Raises pydantic's own error, whose place begins at
    the group's field."""
    if placed in given:
        raise ValueError(f"{placed} follows from directory: leave it out")
    kind.model_validate({**given, placed: Path()})
    return given


Absolute = Annotated[Path, AfterValidator(Path.absolute)]
GatewayFields = Annotated[dict[str, Any], AfterValidator(partial(checked, GatewaySettings, "journals"))]
RolloutFields = Annotated[dict[str, Any], AfterValidator(partial(checked, RolloutSettings, "directory"))]
