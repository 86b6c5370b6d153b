# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Every path that a harness may call, as one raw ASGI application: route, authenticate, parse, answer or refuse."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from nemo_gym_polar.chat import Completion, Request
from nemo_gym_polar.dialects import registry
from nemo_gym_polar.dialects.base import CallError, Dialect, Endpoint, Target
from nemo_gym_polar.dialects.responses import deleted
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.gateway import wire
from nemo_gym_polar.gateway.budget import BudgetError
from nemo_gym_polar.gateway.call import complete, count_tokens
from nemo_gym_polar.gateway.connection import reset, watch
from nemo_gym_polar.gateway.exhausted import over_budget
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.keepalive import KeepAlive
from nemo_gym_polar.gateway.logs import LABELS
from nemo_gym_polar.gateway.session import Call, Session

logger = logging.getLogger(__name__)
_RENDERING = 20.0  # seconds; some harnesses give up on headers after 60


@dataclass(slots=True)
class Exchange:
    """One request and the state of its answer. `status` is what was sent, 0 while nothing was."""

    scope: Scope
    receive: Receive
    send: Send
    dialect: Dialect
    status: int = 0


class CallEndpoint:
    """`/s/{session}/<provider path>`, or `<provider path>` where the key alone names the session."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session_id, path = _split(scope["path"])
        dialect, endpoint = registry.find(Target(path, scope["query_string"].decode("latin-1"), wire.marks(scope)))
        exchange = Exchange(scope, receive, send, dialect)
        started = time.monotonic()
        try:
            await self._serve(exchange, session_id, path, endpoint)
        except wire.ClientGoneError:
            self._gateway.metrics.aborted.count("client gone")
        except (CallError, EngineError, JournalError) as error:
            await self._refuse(exchange, error)
        except Exception:  # a bug of ours: the harness still gets an answer in its dialect, the log the traceback
            logger.exception("%s %s failed", scope["method"], path)
            await self._refuse(exchange, CallError("server", "The server had an error processing your request."))
        metrics = self._gateway.metrics
        metrics.calls.count(dialect.NAME, exchange.status)
        seconds = time.monotonic() - started
        metrics.seconds.observe(seconds)
        logger.debug("%s %s: %d after %.3f s", scope["method"], path, exchange.status, seconds)

    async def _serve(self, exchange: Exchange, session_id: str | None, path: str, endpoint: Endpoint | None) -> None:
        scope = exchange.scope
        if wire.header(scope, b"upgrade") == b"websocket":
            raise CallError("upgrade_required", "WebSocket is not offered here; send an HTTP request.")
        if endpoint is not None and endpoint.kind == "hello" and scope["method"] in endpoint.methods:
            await self._say(exchange, b"")
            return
        session = self._gateway.locate(session_id, wire.api_key(scope))
        if session is None:
            raise CallError("authentication", "Incorrect API key provided, or its session has ended.")
        LABELS.set(session.labels)
        if session.rate is not None and (wait := session.rate.take(time.monotonic())):
            raise CallError("rate_limit", "This session calls too often; wait a little.", retry_after=wait)
        if endpoint is None:
            raise CallError("not_found", f"Invalid URL ({scope['method']} {path})")
        if scope["method"] not in endpoint.methods:
            allowed = " or ".join(endpoint.methods)
            raise CallError("method_not_allowed", f"{scope['method']} is not allowed for {path}; use {allowed}.")
        match endpoint.kind:
            case "generate":
                await self._generate(exchange, session, endpoint)
            case "count":
                request = session.stored.resume(session.forest, await self._parse(exchange, session, endpoint))
                await self._say(exchange, exchange.dialect.count(await count_tokens(self._gateway, session, request)))
            case "stored":
                await self._say(exchange, _stored(session, exchange, endpoint.id or ""))
            case "model":
                await self._say(exchange, exchange.dialect.model(endpoint.model or ""))
            case _:
                await self._say(exchange, exchange.dialect.models(self._gateway.models))

    async def _say(self, exchange: Exchange, content: bytes) -> None:
        exchange.status = 200
        await wire.respond(exchange.send, 200, content)

    async def _parse(self, exchange: Exchange, session: Session, endpoint: Endpoint) -> Request:
        data = await wire.body(exchange.scope, exchange.receive, self._gateway.settings.max_body_bytes)
        return exchange.dialect.parse(data, endpoint, wire.hints(exchange.scope), session.recall)

    # Generations

    async def _generate(self, exchange: Exchange, session: Session, endpoint: Endpoint) -> None:
        settings = self._gateway.settings
        if self._gateway.draining:
            raise CallError("server", "The gateway is shutting down.", status=503, retry_after=settings.retry_after)
        if self._gateway.calls.number >= settings.max_calls:
            message = f"{settings.max_calls} calls are in flight already."
            raise CallError("rate_limit", message, retry_after=settings.retry_after)
        request = session.stored.resume(session.forest, await self._parse(exchange, session, endpoint))
        with self._gateway.calls:
            await self._run(exchange, session, request)

    async def _run(self, exchange: Exchange, session: Session, request: Request) -> None:
        call = Call(exchange.dialect.RESPONSE_ID_PREFIX)
        session.calls.add(call)
        stop_watching = watch(exchange.scope, exchange.receive, call.leave)
        try:
            completion = await self._awaited(exchange, session, request, call)
        except (CallError, EngineError, JournalError):
            if not call.gone:
                raise
        except asyncio.CancelledError:
            if not call.gone:
                raise
            _uncancel()
        finally:
            stop_watching()
        if call.gone:
            self._leave(session, call)
            return
        if request.stored:
            session.stored.keep(completion, request, call.turns[0].index if call.turns else None)
        await self._answer(exchange, request, call, completion)

    async def _awaited(self, exchange: Exchange, session: Session, request: Request, call: Call) -> Completion:
        """The answer; a stream is kept alive meanwhile.

        It begins only when its context is rendered: a context that is too long has to have its own status, since
        harnesses ask again after a reset.
        """
        settings = self._gateway.settings
        answer = self._complete if self._gateway.tracing is None else self._traced
        latest = time.monotonic() + _RENDERING
        alive = None
        if request.stream:
            alive = KeepAlive(
                lambda: self._keep_alive(exchange, request, call),
                lambda: call.rendered or time.monotonic() >= latest,
                grace=settings.header_grace,
                pause=settings.keep_alive,
            )
        try:
            return await answer(exchange.dialect, session, request, call)
        finally:
            call.ended.set()
            session.calls.discard(call)
            if alive is not None:
                await alive.end()

    async def _traced(self, dialect: Dialect, session: Session, request: Request, call: Call) -> Completion:
        from nemo_gym_polar.gateway.tracing import answered

        assert self._gateway.tracing is not None
        with self._gateway.tracing.call(session, request, call) as span:
            completion = await self._complete(dialect, session, request, call)
            answered(span, completion, call)
            return completion

    async def _complete(self, dialect: Dialect, session: Session, request: Request, call: Call) -> Completion:
        """Deadline and end of session cut generations, never a commit: what was sampled in time is kept."""
        seconds = session.budget.seconds_left
        timer = None
        if seconds is not None:
            timer = asyncio.get_running_loop().call_later(max(0.0, seconds), _out_of_time, session, call)
        try:
            return await complete(self._gateway, session, dialect, request, call)
        except asyncio.CancelledError:
            if call.cut is None:
                raise
            _uncancel()
            refused = call.cut
            if isinstance(refused, BudgetError):
                self._gateway.metrics.aborted.count("deadline")
        except BudgetError as error:
            refused = error
        finally:
            if timer is not None:
                timer.cancel()
        if isinstance(refused, BudgetError):
            return await over_budget(self._gateway, session, request, call, refused)
        raise refused

    async def _keep_alive(self, exchange: Exchange, request: Request, call: Call) -> None:
        await self._begin(exchange, request, call)
        await wire.write(exchange.send, exchange.dialect.KEEP_ALIVE, more=True)

    async def _begin(self, exchange: Exchange, request: Request, call: Call) -> None:
        """Send the headers of a stream, and what comes before any answer, unless that was done."""
        if exchange.status:
            return
        exchange.status = 200
        await wire.begin(exchange.send, _stream_headers(request))
        if opening := exchange.dialect.opening(call.response_id, call.created, request):
            await wire.write(exchange.send, opening, more=True)

    async def _answer(self, exchange: Exchange, request: Request, call: Call, completion: Completion) -> None:
        dialect, send = exchange.dialect, exchange.send
        if request.stream:
            await self._begin(exchange, request, call)
            await wire.write(send, b"".join(dialect.stream(completion, request)), more=False)
        else:
            exchange.status = 200
            await wire.respond(send, 200, dialect.answer(completion, request))

    def _leave(self, session: Session, call: Call) -> None:
        """The harness is gone: what the engine had finished by then is kept as unseen."""
        if not call.turns:
            raise wire.ClientGoneError
        for turn in call.turns:
            session.recorder.unseen(turn)
            self._gateway.metrics.unseen.inc()

    # Errors

    async def _refuse(self, exchange: Exchange, error: CallError | EngineError | JournalError) -> None:
        """An error before the headers has its status; after them only a reset says that the answer is not whole."""
        if isinstance(error, EngineError):
            self._gateway.metrics.faults.count(error.fault)
            logger.warning("engine: %s", error)
        if exchange.status:
            self._gateway.metrics.broken.inc()
            reset(exchange.scope)
            return
        refused = self._call_error(error)
        exchange.status = refused.status
        headers = [wire.JSON]
        if refused.retry_after is not None:
            headers.append((b"retry-after", str(math.ceil(refused.retry_after)).encode()))
        await wire.respond(exchange.send, refused.status, exchange.dialect.error(refused), headers)

    def _call_error(self, error: CallError | EngineError | JournalError) -> CallError:
        match error:
            case CallError():
                return error
            case ContextOverflowError():
                said = str(error)
                return CallError("context_overflow", said, param="messages", limit=error.limit, asked=error.asked)
            case EngineError(fault="overloaded"):
                wait = error.retry_after or self._gateway.settings.retry_after
                return CallError("rate_limit", str(error), retry_after=wait)
            case EngineError(status=400):
                return CallError("invalid_request", str(error))
            case EngineError():
                return CallError("server", str(error), status=error.status, retry_after=error.retry_after)
        return CallError("server", f"The journal can't be written: {error}", status=503)


def _out_of_time(session: Session, call: Call) -> None:
    call.cancel(session.budget.out_of_time())


def _stream_headers(request: Request) -> Iterable[wire.Header]:
    return (wire.JSON,) if request.array else wire.EVENTS


def _stored(session: Session, exchange: Exchange, response_id: str) -> bytes:
    if exchange.scope["method"] == "DELETE":
        session.stored.delete(response_id)
        return deleted(response_id)
    stored = session.stored.find(response_id)
    return exchange.dialect.answer(stored.completion, stored.request)


def _split(path: str) -> tuple[str | None, str]:
    """Session id and provider path."""
    if not path.startswith("/s/"):
        return None, path
    session_id, slash, rest = path[3:].partition("/")
    return session_id, slash + rest or "/"


def _uncancel() -> None:
    """What this task was cancelled for is settled; it goes on."""
    task = asyncio.current_task()
    while task is not None and task.uncancel():
        pass
