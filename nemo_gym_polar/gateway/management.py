# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions over HTTP, for a gateway that runs by itself. Every route wants the admin token as its bearer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.dialects.base import WhenExhausted
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.side import encode_side
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.gateway.access import bearer
from nemo_gym_polar.gateway.completions import completions
from nemo_gym_polar.gateway.gateway import DrainingError, Gateway, UnknownSessionError
from nemo_gym_polar.gateway.session import Session
from nemo_gym_polar.gateway.settings import Positive, Seconds


class SessionRequest(BaseModel):
    """What may be asked of a new session; `timeout` is in seconds from now."""

    model_config = ConfigDict(extra="forbid")

    session_id: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None
    model: str | None = None
    timeout: Seconds | None = None
    max_turns: Positive | None = None
    max_tokens: Positive | None = None
    max_context_tokens: Positive | None = None
    max_read_tokens: Positive | None = None
    max_calls: Positive | None = None
    when_exhausted: WhenExhausted | None = None
    metadata: dict[str, Any] = {}


class SessionCreated(BaseModel):
    """`base_url` ends before the provider's own path; `secret` is the API key."""

    session_id: str
    secret: Annotated[str, Field(repr=False)]
    base_url: str


class SessionState(BaseModel):
    session_id: str
    turns: int
    calls_in_flight: int
    sampled_tokens: int
    read_tokens: int
    exhausted: dict[str, Any] | None


class SessionFinished(BaseModel):
    """`traces` is the file on the gateway's machine that holds them, one JSON object a line."""

    session_id: str
    turns: int
    traces: str
    trained_tokens: int
    dropped: dict[str, int]


def make_router(gateway: Gateway, *, admin_token: str, public_url: str | None, traces: Path) -> APIRouter:
    """`public_url` is where harnesses reach the gateway (by default as the asker does), `traces` a directory."""

    def session(session_id: str) -> Session:
        try:
            return gateway.session(session_id)
        except UnknownSessionError as error:
            raise HTTPException(404, str(error)) from None

    router = APIRouter(prefix="/sessions", dependencies=[bearer(admin_token)])

    @router.post("", status_code=201)
    async def create(asked: SessionRequest, request: Request) -> SessionCreated:
        deadline = None if asked.timeout is None else time.monotonic() + asked.timeout
        options = asked.model_dump(exclude={"timeout"})
        try:
            made = await gateway.open(**options, deadline=deadline)
        except ValueError as error:
            raise HTTPException(409, str(error)) from None
        except DrainingError as error:
            raise HTTPException(503, str(error)) from None
        except JournalError as error:
            raise HTTPException(507, str(error)) from None
        base = public_url or str(request.base_url).rstrip("/")
        return SessionCreated(session_id=made.id, secret=made.secret, base_url=base + made.path)

    @router.get("")
    async def sessions() -> dict[str, list[SessionState]]:
        return {"sessions": [state(found) for found in gateway]}

    @router.get("/{session_id}")
    async def show(session_id: str) -> SessionState:
        return state(session(session_id))

    @router.get("/{session_id}/completions")
    async def calls(session_id: str) -> Response:
        """Every model call so far, with its tokens."""
        made = await asyncio.to_thread(completions, session(session_id).forest)
        body = {"session_id": session_id, "completion_count": len(made), "completions": made}
        return Response(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")

    @router.delete("/{session_id}")
    async def finish(session_id: str) -> SessionFinished:
        forest = await gateway.finish(session(session_id).id)
        return await asyncio.to_thread(write_traces, forest, traces)

    return router


def state(session: Session) -> SessionState:
    return SessionState(
        session_id=session.id,
        turns=len(session.forest),
        calls_in_flight=len(session.calls),
        sampled_tokens=session.budget.tokens,
        read_tokens=session.budget.read,
        exhausted=session.budget.exhausted.plain() if session.budget.exhausted else None,
    )


def write_traces(forest: Forest, directory: Path) -> SessionFinished:
    """Build the session's traces and write them to `directory`/<session>.jsonl."""
    built = build(forest)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{forest.session_id}.jsonl"
    path.write_bytes(b"".join([_line(trace) for trace in built.traces]))
    return SessionFinished(
        session_id=forest.session_id,
        turns=len(forest),
        traces=str(path),
        trained_tokens=built.trained_tokens,
        dropped=dict(built.dropped),
    )


def _line(trace: Trace) -> bytes:
    row = {item.name: getattr(trace, item.name) for item in fields(trace)}
    row["side"] = encode_side(trace.side)
    digest = {"digest": trace_digest(trace)}
    return orjson.dumps({**row, **digest}, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)
