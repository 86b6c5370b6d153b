# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The FastAPI app: health, the rendering's certificate, metrics, and the raw routes that harnesses call.

`HotPath` goes in front of it: a call of a session has no use for the app's middleware.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from nemo_gym_polar.gateway.endpoint import CallEndpoint
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.health import Health

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class HotPath:
    """Calls of sessions go straight to their endpoint, everything else to the app.

    So does all that comes through the Unix socket: that is where sandboxes come in, and counters and addresses are
    nothing for them.
    """

    def __init__(self, gateway: Gateway, app: ASGIApp) -> None:
        self._calls = CallEndpoint(gateway)
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._calls if scope["path"].startswith("/s/") or scope["client"] is None else self._app
        await app(scope, receive, send)


def make_app(gateway: Gateway, *management: APIRouter) -> FastAPI:
    """`management` comes before the calls: any path that it does not know gets a provider's answer."""
    app = FastAPI(title="polar gateway", openapi_url=None)
    calls = CallEndpoint(gateway)
    app.include_router(_operations(gateway))
    for router in management:
        app.include_router(router)
    app.router.routes.append(Mount("", calls))
    return app


def _operations(gateway: Gateway) -> APIRouter:
    router = APIRouter()

    health = Health(gateway)

    @router.get("/health")
    async def ready(response: Response) -> dict[str, Any]:
        report = await health.report()
        response.status_code = 503 if report["reasons"] else 200
        return report

    @router.get("/health/live")
    async def live() -> dict[str, str]:
        """Whether the process answers at all, whatever is the matter around it."""
        return {"status": "ok"}

    @router.get("/certificate")
    async def certificate() -> dict[str, Any]:
        if gateway.certificate is None:
            raise HTTPException(404, "engine.mode=chat: the engine renders; there is a certificate in tokens mode only")
        return gateway.certificate.plain()

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(gateway.metrics.text(), media_type=_METRICS_TYPE)

    return router
