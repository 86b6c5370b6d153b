# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What OpenAI's two APIs, Chat Completions and Responses, have in common: errors, models, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from nemo_gym_polar.dialects.base import CallError, ErrorKind

_TYPE_AND_CODE: Mapping[ErrorKind, tuple[str, str | None]] = {
    "authentication": ("invalid_request_error", "invalid_api_key"),
    "model_not_found": ("invalid_request_error", "model_not_found"),
    "context_overflow": ("invalid_request_error", "context_length_exceeded"),
    "budget": ("invalid_request_error", "session_budget_exhausted"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "server": ("server_error", None),
}


def error(failure: CallError) -> bytes:
    kind, code = _TYPE_AND_CODE.get(failure.kind, ("invalid_request_error", None))
    return orjson.dumps({"error": {"message": failure.message, "type": kind, "param": failure.param, "code": code}})


def models(names: Sequence[str]) -> bytes:
    return orjson.dumps({"object": "list", "data": [_model(name) for name in names]})


def model(name: str) -> bytes:
    return orjson.dumps(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "polar"}


def count(tokens: int) -> bytes:
    """Only Responses has an endpoint for this; Chat Completions answers in its shape."""
    return orjson.dumps({"object": "response.input_tokens", "input_tokens": tokens})
