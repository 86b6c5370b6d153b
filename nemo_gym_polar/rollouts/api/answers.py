# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""JSON answers that may hold token arrays: written by orjson, without a pydantic model on the way."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import Response

OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def answer(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content, option=OPTIONS), status, media_type="application/json")
