# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The server's routes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from nemo_gym_polar.policy.api import chat, completions, control, generate, status, texts
from nemo_gym_polar.policy.api.errors import ApiError
from nemo_gym_polar.policy.api.service import PolicyService
from nemo_gym_polar.policy.engine import EngineStoppedError

Handler = Callable[[PolicyService, Request], Awaitable[Response]]

_ROUTES: dict[str, tuple[str, Handler]] = {
    "/v1/chat/completions": ("POST", chat.chat_completions),
    "/v1/completions": ("POST", completions.completions),
    "/inference/v1/generate": ("POST", generate.generate),
    "/tokenize": ("POST", texts.tokenize),
    "/detokenize": ("POST", texts.detokenize),
    "/v1/models": ("GET", status.models),
    "/health": ("GET", status.health),
    "/version": ("GET", status.version),
    "/metrics": ("GET", status.metrics),
    "/pause": ("POST", control.pause),
    "/resume": ("POST", control.resume),
    "/is_paused": ("GET", control.is_paused),
    "/collective_rpc": ("POST", control.collective_rpc),
    "/update_weight_version": ("POST", control.update_weight_version),
    "/weight_info": ("GET", control.weight_info),
    "/reset_prefix_cache": ("POST", control.reset_prefix_cache),
}
_HUNG_UP = 499  # nobody reads it


def create_app(service: PolicyService, *, on_ready: Callable[[], None] | None = None) -> Starlette:
    """The application; the engine runs as long as it does."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with service.engine:
            if on_ready is not None:
                on_ready()
            yield

    routes = [Route(path, _endpoint(service, handler), methods=[method]) for path, (method, handler) in _ROUTES.items()]
    handlers = {HTTPException: _http_error, Exception: _http_error}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


def _endpoint(service: PolicyService, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await handler(service, request)
        except ApiError as error:
            return error.response()
        except EngineStoppedError as error:
            return ApiError(str(error), status=503).response()
        except ClientDisconnect:
            return Response(status_code=_HUNG_UP)

    return endpoint


async def _http_error(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, and our own mistakes (which uvicorn logs), in the same shape as other errors."""
    code = error.status_code if isinstance(error, HTTPException) else 500
    reason = {404: "is not served here", 405: f"does not answer {request.method}"}.get(code, "failed")
    return ApiError(f"{request.url.path} {reason}.", status=code).response()
