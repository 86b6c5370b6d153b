# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A session's secret stays out of what is kept of it, also where a harness or a command printed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemo_gym_polar.runtimes.log import MASK


def without(secret: str, value: Any) -> Any:
    """The same value, JSON-like, with every string cleared of the secret."""
    if not secret:
        return value
    if isinstance(value, str):
        return value.replace(secret, MASK.decode())
    if isinstance(value, Mapping):
        return {without(secret, key): without(secret, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(secret, item) for item in value]
    return value
