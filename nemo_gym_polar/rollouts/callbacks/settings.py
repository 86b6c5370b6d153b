# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""How callbacks are made."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

Seconds = Annotated[float, Field(gt=0)]


class CallbackSettings(BaseModel):
    """`key` signs; without one callbacks go unsigned. One that fails is tried again after `first_delay` seconds, then
    after twice as many and so on up to `longest_delay`, each shortened at random, and given up `give_up_after` seconds
    after the first try. `traces`: results are sent with their token arrays.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: SecretStr | None = None
    timeout: Seconds = 10.0
    first_delay: Seconds = 1.0
    longest_delay: Seconds = 300.0
    give_up_after: Seconds = 24 * 3600.0
    at_once: Annotated[int, Field(ge=1)] = 16
    traces: bool = True
