# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Composed values to settings that hold: every key known, every value of its type, or one line about what is not."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from nemo_gym_polar.cli.compose import Composed, unknown_key
from nemo_gym_polar.cli.errors import UsageError


def validate[S: BaseModel](composed: Composed, kind: type[S]) -> S:
    """Raises UsageError naming each wrong key with the nearest known one, each wrong value with its file."""
    try:
        return kind.model_validate(composed.values)
    except ValidationError as error:
        wrong = [_explain(composed, item["type"], item["loc"], item["input"], item["msg"]) for item in error.errors()]
        raise UsageError("; ".join(wrong)) from error


def _explain(composed: Composed, fault: str, place: tuple[int | str, ...], value: object, reason: str) -> str:
    key = ".".join(map(str, place))
    if fault == "extra_forbidden":
        return unknown_key(composed, key)
    reason = reason.removeprefix("Value error, ")
    if isinstance(value, dict | BaseModel):
        return f"{key}: {reason} ({composed.source(key)})" if key else reason
    return f"{key}={value!r}: {reason} ({composed.source(key)})"
