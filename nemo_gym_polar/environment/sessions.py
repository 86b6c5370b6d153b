# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the resources server does for a rollout: open its session, end it, make its result."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

from nemo_gym_polar.environment.calls import calls_of
from nemo_gym_polar.environment.delivery import Delivery, choose
from nemo_gym_polar.environment.host import Host
from nemo_gym_polar.environment.placeholder import sample_placeholder
from nemo_gym_polar.environment.protocol import Finish, Finished, Open, Opened, Verify, WireTrace
from nemo_gym_polar.environment.responses import TraceError, empty_response, output_items, response
from nemo_gym_polar.environment.result import Result, result
from nemo_gym_polar.environment.rows import instruction
from nemo_gym_polar.environment.settings import ResourcesSettings
from nemo_gym_polar.forest.builders import Build, build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.rollouts.first_prompt import first_prompt
from nemo_gym_polar.rollouts.sources import answers, exhausted_budget
from nemo_gym_polar.rollouts.task import SessionStatus

logger = logging.getLogger(__name__)

_GRACE = 600.0  # seconds after its deadline that a session may still be verified


@dataclass(frozen=True, slots=True)
class Chain:
    """The chain of a forest that is delivered, and what else the builder made of it."""

    forest: Forest
    build: Build
    delivery: Delivery

    def counts(self) -> dict[str, int]:
        trace = self.delivery.trace
        return {
            "model_calls": len(self.forest),
            "traces": len(self.build.traces),
            "chain_tokens": len(trace) if trace else 0,
            "delivered_tokens": trace.trained_tokens if trace else 0,
            "dropped_tokens": sum(self.build.dropped.values()),
            **{f"undelivered_{kind}_tokens": count for kind, count in self.delivery.undelivered.items()},
        }


@dataclass(frozen=True, slots=True)
class Body:
    """A Responses object, and why it must not be trained on, if so."""

    response: dict[str, Any]
    failure: str | None = None
    error: str | None = None
    placeholder_tokens: int = 0


class Sessions:
    """The only owner of tokens. A session is forgotten when it is verified, or some time after its deadline."""

    def __init__(self, host: Host, settings: ResourcesSettings) -> None:
        self._gateway = host.gateway
        self._host = host
        self._settings = settings
        self._forests: dict[str, Forest] = {}
        self._until: dict[str, float] = {}

    async def open(self, ask: Open) -> Opened:
        await self._forget_abandoned()
        now = time.monotonic()
        session = await self._gateway.open(
            ask.session_id,
            model=ask.model,
            deadline=now + ask.timeout_seconds,
            max_turns=ask.max_turns,
            max_tokens=ask.max_generated_tokens,
            max_context_tokens=ask.max_context_tokens,
            max_read_tokens=ask.max_read_tokens,
            max_calls=ask.max_calls,
            when_exhausted=ask.when_exhausted,
            sampling=ask.sampling,
            metadata=ask.metadata,
        )
        self._until[session.id] = now + ask.timeout_seconds + _GRACE
        return Opened(
            session_id=session.id,
            secret=session.secret,
            path=session.path,
            url=self._host.url,
            socket=str(self._host.socket),
            model=session.model,
            context_tokens=self._settings.context_tokens,
            max_tokens=session.profile.max_tokens or self._settings.context_tokens,
        )

    async def finish(self, ask: Finish) -> Finished:
        """End the session and build its traces as the task asks. Raises `UnknownSessionError`, `BuilderError`."""
        exhausted = exhausted_budget(self._gateway.session(ask.session_id))
        forest = await self._end(ask.session_id, ask.outcome)
        built = build(forest, ask.builder.strategy, ask.builder.config)
        traces = [WireTrace.of(trace) for trace in built.traces]
        return Finished(traces=traces, dropped=dict(built.dropped), turns=answers(forest), exhausted=exhausted)

    async def verify(self, ask: Verify) -> Result:
        """The result of the rollout; its session is then forgotten. Raises `UnknownSessionError`."""
        chain = self._chain(await self._end(ask.session_id))
        self._forget(ask.session_id)
        body = await self._body(ask, chain)
        prompt = first_prompt(chain.forest)
        return result(
            ask,
            body.response,
            counts={**chain.counts(), "placeholder_tokens": body.placeholder_tokens},
            dropped=chain.build.dropped,
            first_prompt=prompt.digest.hex() if prompt else "",
            error=body.error,
            failure=body.failure,
        )

    # What is delivered

    def _chain(self, forest: Forest) -> Chain:
        """One linear chain is all that a result can hold, whatever builder the task asks for."""
        built = build(forest, "prefix_merging", {"max_tokens": self._settings.context_tokens})
        return Chain(forest, built, choose(built.traces))

    async def _body(self, ask: Verify, chain: Chain) -> Body:
        try:
            if (whole := self._response(chain)) is not None:
                return Body(whole, _failure(ask, chain.delivery))
            return await self._placeholder(ask)
        except TraceError as broken:
            logger.error("%s", broken)
            return Body(self._empty(ask.session_id), "broken_trace", str(broken))

    def _response(self, chain: Chain) -> dict[str, Any] | None:
        trace = chain.delivery.trace
        if trace is None:
            return None
        items = output_items(trace, calls_of(chain.forest, trace))
        return response(trace, items, model=self._settings.engine.model, created=chain.forest[0].started)

    async def _placeholder(self, ask: Verify) -> Body:
        failure = _failure(ask, Delivery(None))
        if self._settings.placeholder:
            text = instruction(ask.responses_create_params["input"])
            forest = await sample_placeholder(self._gateway, ask.session_id, text)
            chain = self._chain(forest) if forest is not None else None
            if chain is not None and (whole := self._response(chain)) is not None:
                return Body(whole, failure, placeholder_tokens=chain.build.trained_tokens)
        return Body(self._empty(ask.session_id), failure)

    def _empty(self, session_id: str) -> dict[str, Any]:
        return empty_response(model=self._settings.engine.model, created=time.time(), identity=session_id)

    # What is kept

    async def _end(self, session_id: str, outcome: dict[str, Any] | None = None) -> Forest:
        if session_id not in self._forests:
            self._forests[session_id] = await self._gateway.finish(session_id, outcome)
        return self._forests[session_id]

    def _forget(self, session_id: str) -> None:
        self._forests.pop(session_id, None)
        self._until.pop(session_id, None)

    async def _forget_abandoned(self) -> None:
        """An agent server that died can't say goodbye."""
        now = time.monotonic()
        for session_id in [session_id for session_id, until in self._until.items() if until < now]:
            await self._end(session_id, {"ended": "abandoned"})
            self._forget(session_id)


def _failure(ask: Verify, delivery: Delivery) -> str | None:
    """Why a rollout must not be trained on. A time-out with a score is the policy's own doing, so it counts."""
    if ask.masked or (delivery.trace is None and ask.status is not SessionStatus.COMPLETED):
        return f"rollout_{ask.status.lower()}"
    if delivery.trace is None:
        return "no_tokens"
    return None if delivery.usable else "no_main_chain"
