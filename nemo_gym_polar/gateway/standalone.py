# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A gateway by itself, in front of any engine: what `polar serve` runs.

With an admin token, sessions are made and finished over HTTP. Without one there is a single session, made at the start,
and the gateway listens on the loopback interface only.
"""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, model_validator

from nemo_gym_polar.engines.factory import EngineSettings, make_engine
from nemo_gym_polar.gateway import logs
from nemo_gym_polar.gateway.app import make_app
from nemo_gym_polar.gateway.garbage import settle
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.logs import LogFormat
from nemo_gym_polar.gateway.management import make_router, write_traces
from nemo_gym_polar.gateway.server import serve
from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.gateway.shutdown import Stop
from nemo_gym_polar.gateway.updates import update_router


class ServeSettings(BaseModel):
    """`public_url` is where harnesses reach the gateway, if that is not where it listens.

    After a signal, calls in flight have `drain_seconds` to end; a second signal cuts them off.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    engine: EngineSettings
    gateway: GatewaySettings
    traces: Path
    host: str = "127.0.0.1"
    port: int = 8399
    uds: Path | None = None
    admin_token: Annotated[str | None, Field(repr=False)] = None
    public_url: str | None = None
    drain_seconds: Annotated[float, Field(ge=0)] = 30.0
    log_format: LogFormat = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    @model_validator(mode="after")
    def _open_doors_need_a_token(self) -> ServeSettings:
        if not self.admin_token and not _is_loopback(self.host):
            raise ValueError(f"host={self.host} is reachable from other machines: set admin_token, or use 127.0.0.1")
        return self


def run_gateway(settings: ServeSettings, say: Callable[[str], None] = print) -> None:
    """Serve until SIGINT or SIGTERM. Raises `EngineError` for a dead engine, `OSError` for a port that is taken."""
    import uvloop

    logs.configure(settings.log_format, settings.log_level)
    uvloop.run(serve_gateway(settings, say))


async def serve_gateway(settings: ServeSettings, say: Callable[[str], None] = print) -> None:
    async with Gateway(make_engine(settings.engine), settings.gateway) as gateway:
        await gateway.mode.engine.check()
        settle()
        await _serve(gateway, settings, say)


async def _serve(gateway: Gateway, settings: ServeSettings, say: Callable[[str], None]) -> None:
    stop = Stop()
    async with serve(
        gateway, host=settings.host, port=settings.port, uds=settings.uds, app=_app(gateway, settings)
    ) as at:
        if settings.admin_token:
            say(f"gateway on {at.url}; POST /sessions makes a session")
            _note_certificate(gateway)
            await _until_stopped(gateway, settings, stop)
            return
        session = await gateway.open()
        base_url = (settings.public_url or at.url) + session.path
        say(f"gateway on {at.url}\nbase URL  {base_url}\nAPI key   {session.secret}")
        _note_certificate(gateway)
        await _until_stopped(gateway, settings, stop)
    finished = await asyncio.to_thread(write_traces, await gateway.finish(session.id), settings.traces)
    say(f"{finished.turns} turns, {finished.trained_tokens} tokens to train on: {finished.traces}")


async def _until_stopped(gateway: Gateway, settings: ServeSettings, stop: Stop) -> None:
    await stop.asked.wait()
    await stop.drained(gateway, settings.drain_seconds, _note)


def _note(text: str) -> None:
    """On stderr, where logs go: programs read the address and the traces from stdout."""
    print(text, file=sys.stderr, flush=True)


def _note_certificate(gateway: Gateway) -> None:
    if gateway.certificate is not None:
        _note(f"certificate {gateway.certificate.line()}")


def _app(gateway: Gateway, settings: ServeSettings) -> FastAPI:
    if not settings.admin_token:
        return make_app(gateway)
    token = settings.admin_token
    sessions = make_router(gateway, admin_token=token, public_url=settings.public_url, traces=settings.traces)
    return make_app(gateway, sessions, update_router(gateway, admin_token=token))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
