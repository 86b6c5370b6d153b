# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Errors in the shape that OpenAI clients, and vLLM's, expect."""

from __future__ import annotations

import orjson
from starlette.responses import Response

_TYPES = {400: "BadRequestError", 404: "NotFoundError", 405: "MethodNotAllowedError", 503: "ServiceUnavailableError"}


class ApiError(Exception):
    """A call that ends in an error. `param` names the field at fault."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param

    def body(self) -> dict[str, object]:
        kind = _TYPES.get(self.status, "InternalServerError")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.status}}

    def response(self) -> Response:
        return Response(orjson.dumps(self.body()), self.status, media_type="application/json")
