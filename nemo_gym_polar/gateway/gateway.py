# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The gateway: its sessions, the engine behind it, and the journals below it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.dialects.base import CallError, WhenExhausted
from nemo_gym_polar.engines.certificate import Certificate, certify
from nemo_gym_polar.engines.factory import Mode, TokensMode
from nemo_gym_polar.forest.committer import Committer
from nemo_gym_polar.forest.errors import JournalError
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.recorder import Recorder
from nemo_gym_polar.gateway.budget import Budget
from nemo_gym_polar.gateway.logs import NO_LABELS
from nemo_gym_polar.gateway.metrics import Metrics
from nemo_gym_polar.gateway.session import Session, check_id, new_id, sampling_profile
from nemo_gym_polar.gateway.settings import GatewaySettings
from nemo_gym_polar.gateway.traffic import Traffic
from nemo_gym_polar.gateway.weights import Weights

if TYPE_CHECKING:  # an extra, and slow to import
    from nemo_gym_polar.gateway.tracing import Tracing

logger = logging.getLogger(__name__)


class UnknownSessionError(LookupError):
    """No open session has this id."""


class DrainingError(ConnectionRefusedError):
    """The gateway takes no more sessions."""


class Gateway:
    """Open a session, point a harness at its path, finish it and take its forest.

    Use it in one event loop and close it there; it owns the engine that it was given.
    """

    def __init__(self, engine: Mode, settings: GatewaySettings, tracing: Tracing | None = None) -> None:
        """`tracing` takes the spans of sessions and calls; with `settings.tracing` they are sent by OTLP."""
        if taken := sorted(engine.helpers.keys() & set(settings.models)):
            raise ValueError(f"engine.helpers.{taken[0]} is also a name of the policy; give the helper another alias")
        self.mode = engine
        self.settings = settings
        self.metrics = Metrics()
        self.certificate = _certificate(engine)
        self.weights = Weights()
        self.calls = Traffic()
        self.draining = False
        self.tracing = tracing or (_exporting() if settings.tracing else None)
        self._committer = Committer(settings.commit_window, self.metrics.count_commit)
        self._sessions: dict[str, Session] = {}
        self._by_key: dict[bytes, Session] = {}
        self._watch()

    async def open(
        self,
        session_id: str | None = None,
        *,
        model: str | None = None,
        deadline: float | None = None,
        max_turns: int | None = None,
        max_tokens: int | None = None,
        max_context_tokens: int | None = None,
        max_read_tokens: int | None = None,
        max_calls: int | None = None,
        when_exhausted: WhenExhausted | None = None,
        sampling: Sampling | None = None,
        metadata: Mapping[str, Any] | None = None,
        group: str | None = None,
    ) -> Session:
        """A new session. `deadline` is in seconds of `time.monotonic()`; `sampling` replaces the profile's values.
        Sessions of one `group` begin with the same prompt.

        Budgets (None: no limit): `max_turns` are calls, `max_tokens` generated tokens, `max_context_tokens` what one
        call may read and `max_read_tokens` what all may. Of more than `max_calls` at a time the rest wait.

        A session whose journal exists already goes on after its last whole turn. Raises `ValueError` for an id that
        is open or malformed, `JournalError` if the journal can't be made, `DrainingError` before a shutdown.
        """
        if self.draining:
            raise DrainingError("the gateway is shutting down; it takes no new sessions")
        session_id = check_id(session_id or new_id())
        if session_id in self._sessions:
            raise ValueError(f"session {session_id!r} is open already; finish it first or choose another id")
        path = self.settings.journals / f"{session_id}.journal"
        session = Session(
            session_id,
            await Recorder.open(path, session_id, self._committer, metadata),
            model=model or self.settings.models[0],
            budget=Budget(
                max_turns,
                max_tokens,
                deadline,
                max_context_tokens,
                max_read_tokens,
                when_exhausted or self.settings.when_exhausted,
            ),
            profile=sampling_profile(self.settings.sampling, sampling),
            slots=max_calls or self.settings.max_calls_per_session,
            calls_per_minute=self.settings.max_calls_per_minute,
            labels={"task_id": str(metadata["task_id"])} if metadata and "task_id" in metadata else NO_LABELS,
        )
        if group is not None:
            self.mode.engine.join(session_id, group)
        self._sessions[session_id] = self._by_key[_digest(session.secret)] = session
        if self.tracing is not None:
            self.tracing.begin(session)
        self.metrics.opened.inc()
        logger.info("session %s is open", session_id)
        return session

    @property
    def models(self) -> tuple[str, ...]:
        """The names to list: the policy's and the helpers'."""
        return (*self.settings.models, *self.mode.helpers)

    def __len__(self) -> int:
        """Open sessions."""
        return len(self._sessions)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._sessions

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def session(self, session_id: str) -> Session:
        try:
            return self._sessions[session_id]
        except KeyError:
            raise UnknownSessionError(f"no open session {session_id!r}") from None

    def locate(self, session_id: str | None, key: str | None) -> Session | None:
        """The session that `key` opens; with an id, only if the two belong together."""
        if key is None:
            return None
        if session_id is None:
            return self._by_key.get(_digest(key))
        session = self._sessions.get(session_id)
        return session if session is not None and session.admits(key) else None

    @property
    def policy_version(self) -> str | None:
        """The weights in use, as far as is known."""
        return self.weights.version

    @property
    def calls_in_flight(self) -> int:
        return self.calls.number

    async def pause(self, seconds: float) -> None:
        """Hold new generations back and wait until none is in flight, for a weight update. Raises `NotDrainedError`,
        and goes on as before, if that takes longer than `seconds`."""
        await self.weights.pause(seconds)

    def resume(self, policy_version: str | None = None) -> None:
        """Go on after a pause, with these weights. Without a pause before it: say that they were replaced in flight."""
        if policy_version is not None:
            self.metrics.updates.inc()
        self.weights.resume(policy_version)

    async def drain(self, seconds: float) -> bool:
        """Take no new session and no new call; whether those in flight have ended within `seconds`."""
        self.draining = True
        return await self.calls.idle(seconds)

    async def finish(self, session_id: str, outcome: Mapping[str, Any] | None = None) -> Forest:
        """Close a session: later calls are unknown, calls in flight are cut off, its journal ends with `outcome`."""
        session = self.session(session_id)
        del self._sessions[session_id], self._by_key[_digest(session.secret)]
        cut = await session.end_calls()
        self.metrics.aborted.count("session finished", by=cut)
        self.mode.engine.release(session_id)
        if self.tracing is not None:
            self.tracing.end(session)
        self.metrics.count_finished(session.forest)
        logger.info("session %s is finished after %d turns", session_id, len(session.forest))
        if session.budget.exhausted is not None:
            outcome = {**(outcome or {}), "exhausted": session.budget.exhausted.plain()}
        try:
            await session.recorder.close(outcome)
        except JournalError:
            # Each call that it concerns was refused; what was durable before is still whole.
            logger.exception("the journal of session %s has no end", session_id)
        return session.forest

    def cut_calls(self) -> None:
        """Stop what is being generated; the harnesses are told to come again."""
        reason = CallError("server", "The gateway is shutting down.", status=503, retry_after=self.settings.retry_after)
        for session in self._sessions.values():
            for call in session.calls:
                self.metrics.aborted.count("shutdown")
                call.cancel(reason)

    def _watch(self) -> None:
        """What is read when somebody asks for it."""
        watch, weights = self.metrics.watch, self.weights
        watch("polar_open_sessions", "Sessions that are open.", lambda: len(self._sessions))
        watch("polar_calls_in_flight", "Calls that are being answered.", lambda: self.calls.number)
        watch("polar_generations_in_flight", "Generations at the engine.", lambda: weights.generations.number)
        watch("polar_weights_paused", "1 while generations are held back for new weights.", lambda: weights.paused)
        watch("polar_draining", "1 once the gateway takes no more calls.", lambda: self.draining)
        watch("polar_journal_queue_records", "Records that wait for a commit.", lambda: self._committer.queued)
        self.metrics.watch_engine(self.mode.engine.replicas)

    async def close(self) -> None:
        """Finish every session and close the engine."""
        for session_id in list(self._sessions):
            await self.finish(session_id, {"ended": "gateway closed"})
        await self.mode.engine.close()
        for helper in self.mode.helpers.values():
            await helper.close()
        await asyncio.to_thread(self._committer.close)
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _exporting() -> Tracing:
    try:
        from nemo_gym_polar.gateway.tracing import Tracing

        return Tracing.exporting()
    except ImportError as error:
        missing = f"tracing needs OpenTelemetry ({error}); install nemo-gym-polar[otel], or leave tracing off"
        raise ValueError(missing) from error


def _certificate(mode: Mode) -> Certificate | None:
    """What can be relied on when the gateway renders; nothing is known of an engine that renders itself."""
    if not isinstance(mode, TokensMode):
        return None
    certificate = certify(mode.rendering)
    logger.info("certificate %s", certificate.line())
    return certificate


def _digest(secret: str) -> bytes:
    """Secrets are looked up by digest, so that the time of a look-up says nothing about them."""
    return blake2b(secret.encode(), digest_size=32).digest()
