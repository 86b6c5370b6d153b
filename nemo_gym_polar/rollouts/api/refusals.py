# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What went wrong, as FastAPI says it: `{"detail": …}`, with the field, its value and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from nemo_gym_polar.rollouts.control.errors import (
    BackPressureError,
    ControlError,
    NoTracesError,
    TaskConflictError,
    UnknownNodeError,
    UnknownSessionError,
    UnknownTaskError,
)
from nemo_gym_polar.rollouts.errors import RolloutError
from nemo_gym_polar.rollouts.nodes.base import NodeBusyError, NodeError
from nemo_gym_polar.rollouts.store.errors import StoreError

STATUS: Sequence[tuple[type[Exception], int]] = (
    (UnknownTaskError, 404),
    (UnknownSessionError, 404),
    (UnknownNodeError, 404),
    (NoTracesError, 404),
    (TaskConflictError, 409),
    (BackPressureError, 429),
    (ControlError, 409),
    (NodeBusyError, 503),
    (NodeError, 502),
    (StoreError, 503),
)
FIELD = re.compile(r"^([A-Za-z_][\w.]*)=")  # how our errors begin: «runtime.backend='x' is unknown»
SECRET = re.compile(r"\b(env|headers|token|key|secret|password)\b", re.IGNORECASE)
SHOWN = 200  # characters of a wrong value


def handle_refusals(app: FastAPI) -> None:
    """Turn what is raised below into answers."""

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        schema = body_schema(request)
        return JSONResponse({"detail": [described(item, schema) for item in error.errors()]}, 422)

    async def wrong(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": [task_error(str(error))]}, 422)

    async def refused(request: Request, error: Exception) -> JSONResponse:
        code = next(code for kind, code in STATUS if isinstance(error, kind))
        headers = {"Retry-After": str(max(1, round(error.retry_after)))} if isinstance(error, BackPressureError) else {}
        return JSONResponse({"detail": str(error)}, code, headers)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(RolloutError, wrong)
    for kind in (ControlError, NodeError, StoreError):
        app.add_exception_handler(kind, refused)


def task_error(message: str) -> dict[str, Any]:
    found = FIELD.match(message)
    place = found[1].split(".") if found else []
    return {"type": "value_error", "loc": ["body", *place], "msg": message}


def described(item: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """One of pydantic's errors; objects are not shown, nor what may be secret."""
    place = [step for step in item["loc"] if step != "body"]
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = f"unknown field; {nearest(schema, place)}"
    name = ".".join(map(str, place))
    value = item.get("input")
    shown = not isinstance(value, Mapping | list) and item["type"] not in ("missing", "json_invalid")
    if shown and not SECRET.search(name.replace("_", " ")):
        name = f"{name}={repr(value)[:SHOWN]}"
    said = message if not name or message.startswith(name) else f"{name}: {message}"
    return {"type": item["type"], "loc": list(item["loc"]), "msg": said}


def nearest(schema: Mapping[str, Any], place: Sequence[int | str]) -> str:
    known = known_fields(schema, place[:-1])
    if not known:
        return "leave it out"
    alike = difflib.get_close_matches(str(place[-1]), known, n=1)
    return f"did you mean {alike[0]!r}?" if alike else f"known are: {', '.join(known)}"


def known_fields(schema: Mapping[str, Any], place: Sequence[int | str]) -> list[str]:
    """The names that an object at `place` may have."""
    found: Mapping[str, Any] = schema
    for step in place:
        below = found.get("items") if isinstance(step, int) else found.get("properties", {}).get(step)
        found = resolved(below or {}, schema)
    return list(found.get("properties", {}))


def resolved(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without references and without the alternative null."""
    for choice in part.get("anyOf", part.get("allOf", ())):
        if choice.get("type") != "null":
            return resolved(choice, schema)
    if "$ref" not in part:
        return part
    return resolved(schema["definitions"].get(part["$ref"].rpartition("/")[2], {}), schema)


def body_schema(request: Request) -> Mapping[str, Any]:
    """The JSON schema of what the route takes, with all definitions."""
    document = request.app.openapi()
    path = getattr(request.scope.get("route"), "path_format", "")
    operation = document["paths"].get(path, {}).get(request.method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    definitions = {"definitions": document.get("components", {}).get("schemas", {})}
    return {**resolved(content.get("schema", {}), definitions), **definitions}
