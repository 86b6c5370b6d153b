# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Spans for OpenTelemetry: one for a session, and below it one for each call, in the words of its GenAI conventions.

Nothing that was said is in them. The gateway imports this only if it is to trace, since it needs the extra `otel`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Self

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.util.types import AttributeValue

from nemo_gym_polar import __version__
from nemo_gym_polar.chat import Completion, Request
from nemo_gym_polar.dialects.base import CallError
from nemo_gym_polar.engines.base import EngineError
from nemo_gym_polar.gateway.session import Call, Session

_PATIENCE = 5.0  # seconds that one export may take
_PROVIDER = "polar"


class Tracing:
    """Spans of one gateway, for whatever `provider` does with them."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("nemo_gym_polar", __version__)
        self._sessions: dict[str, Span] = {}

    @classmethod
    def exporting(cls) -> Self:
        """Send spans by OTLP to where the usual variables say, such as OTEL_EXPORTER_OTLP_ENDPOINT."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "polar-gateway"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_PATIENCE)))
        return cls(provider)

    def begin(self, session: Session) -> None:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": _PROVIDER,
            "gen_ai.request.model": session.model,
            **_labels(session),
        }
        self._sessions[session.id] = self._tracer.start_span("invoke_agent", attributes=attributes)

    def end(self, session: Session) -> None:
        span = self._sessions.pop(session.id)
        span.set_attribute("polar.turns", len(session.forest))
        span.set_attribute("gen_ai.usage.input_tokens", session.budget.read)
        span.set_attribute("gen_ai.usage.output_tokens", session.budget.tokens)
        if session.budget.exhausted is not None:
            span.set_attribute("polar.exhausted", session.budget.exhausted.budget)
        span.end()

    @contextmanager
    def call(self, session: Session, request: Request, call: Call) -> Iterator[Span]:
        """A span around one call; `answered` adds what came of it."""
        operation = "generate_content" if request.dialect == "generate_content" else "chat"
        with self._tracer.start_as_current_span(
            f"{operation} {request.model}",
            context=set_span_in_context(self._sessions[session.id]),
            kind=SpanKind.CLIENT,
            attributes={"gen_ai.operation.name": operation, **_asked(session, request, call)},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", _error_type(error))
                span.set_status(Status(StatusCode.ERROR))
                raise

    def close(self) -> None:
        """Send what is left. May take seconds where nobody takes it."""
        for span in self._sessions.values():
            span.end()
        self._provider.shutdown()


def answered(span: Span, completion: Completion, call: Call) -> None:
    usage = completion.usage
    span.set_attributes(
        {
            "gen_ai.response.model": completion.model,
            "gen_ai.response.finish_reasons": [choice.finish_reason for choice in completion.choices],
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        }
    )
    if call.turns:
        turn = call.turns[0]
        span.set_attributes({"polar.turn": turn.index, "polar.edge": str(turn.edge)})
        if turn.cause is not None:
            span.set_attribute("polar.cause", str(turn.cause))
        if turn.versions:
            span.set_attribute("polar.policy_version", turn.versions[-1].version)


def _asked(session: Session, request: Request, call: Call) -> Mapping[str, AttributeValue]:
    profile = session.profile
    attributes: dict[str, AttributeValue] = {
        "gen_ai.provider.name": _PROVIDER,
        "gen_ai.request.model": request.model,
        "gen_ai.request.choice.count": request.n,
        "gen_ai.request.temperature": profile.temperature,
        "gen_ai.request.top_p": profile.top_p,
        "gen_ai.response.id": call.response_id,
        "polar.dialect": request.dialect,
        "polar.stream": request.stream,
        **_labels(session),
    }
    if request.sampling.max_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = request.sampling.max_tokens
    return attributes


def _labels(session: Session) -> Mapping[str, str]:
    labels = {"gen_ai.conversation.id": session.id}
    return {**labels, "polar.task_id": session.labels["task_id"]} if "task_id" in session.labels else labels


def _error_type(error: BaseException) -> str:
    match error:
        case CallError():
            return error.kind
        case EngineError():
            return error.fault
    return type(error).__name__
