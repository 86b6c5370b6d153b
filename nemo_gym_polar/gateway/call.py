# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One model call: match, decide the context, generate, record. The answer it returns is durable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nemo_gym_polar.chat import Choice, Completion, FinishReason, Message, Request, Sampling, Text, Usage
from nemo_gym_polar.dialects.base import CallError, Dialect
from nemo_gym_polar.engines.base import ContextOverflowError, EngineError, Sampled
from nemo_gym_polar.engines.factory import ChatMode, TokensMode
from nemo_gym_polar.forest.errors import JournalError, TokenError
from nemo_gym_polar.forest.matching import Match
from nemo_gym_polar.forest.turn import Edge, Flag, Generation, Status, Turn
from nemo_gym_polar.gateway.flags import sampling_flags
from nemo_gym_polar.gateway.gateway import Gateway
from nemo_gym_polar.gateway.helping import ask_helper, renamed
from nemo_gym_polar.gateway.proof import proven_prefix
from nemo_gym_polar.gateway.session import Call, Session
from nemo_gym_polar.gateway.settings import SamplingProfile
from nemo_gym_polar.gateway.together import together
from nemo_gym_polar.gateway.weights import Moment
from nemo_gym_polar.tokens import Int32

_NO_IDS = np.empty(0, np.int32)
_NO_LOGPROBS = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class Answered:
    """What was read, sampled and said."""

    context: Int32
    sampled: Sampled
    message: Message


async def complete(gateway: Gateway, session: Session, dialect: Dialect, request: Request, call: Call) -> Completion:
    """The answer to `request`, in the session's journal. Raises `CallError`, `EngineError` or `JournalError`."""

    def mint() -> str:
        return dialect.CALL_ID_PREFIX + os.urandom(12).hex()

    if (helper := gateway.mode.helpers.get(request.model)) is not None:
        gateway.metrics.helped.count(helper.alias)
        call.rendered = True
        return await ask_helper(helper, session, request, call, mint)
    weights = gateway.weights
    async with session.slots:
        if weights.paused:
            await _hold(gateway)
        session.budget.admit(request.n)
        match = session.recorder.match(request.conversation, request.hints)
        started, began = time.time(), time.monotonic()
        begun = weights.moment
        try:
            with weights.generations:
                answers = await _generate(gateway, session, request, match, call, mint)
            since = (begun, weights.moment)
            gateway.metrics.engine_seconds.observe(time.monotonic() - began)
            for answered in answers:
                generation = _generation(gateway, call.response_id, request, session.profile, answered, started, since)
                await _record(gateway, session, match, generation, call)
        except (EngineError, TokenError) as error:
            session.budget.refund(request.n)
            await _fail(session, match, request, started, call)
            raise error if isinstance(error, EngineError) else EngineError(str(error), fault="misaligned") from error
        except BaseException:
            session.budget.refund(request.n)
            raise
        return _completion(gateway, request, answers, call)


async def _hold(gateway: Gateway) -> None:
    """Until the weights have been replaced. Raises `CallError` where calls are not to wait for that."""
    settings = gateway.settings
    if settings.while_paused == "refuse":
        said = "The model is being updated; please try again."
        raise CallError("rate_limit", said, retry_after=settings.retry_after)
    await gateway.weights.opened()


async def count_tokens(gateway: Gateway, session: Session, request: Request) -> int:
    """How many tokens the policy would read if `request` were a call."""
    if isinstance(gateway.mode, ChatMode):
        return await gateway.mode.engine.count(request.conversation, session=session.id)
    match = session.recorder.peek(request.conversation)
    if match is None:
        return len(await gateway.mode.rendering.prompt(request.conversation))
    return len((await _context(gateway.mode, session, match))[0])


async def _generate(
    gateway: Gateway, session: Session, request: Request, match: Match, call: Call, mint: Callable[[], str]
) -> list[Answered]:
    mode = gateway.mode
    if isinstance(mode, ChatMode):
        if session.budget.bounds_contexts:
            session.budget.admit_context(await mode.engine.count(request.conversation, session=session.id))
        call.rendered = True
        prefix = proven_prefix(session.forest, match)
        sampling = session.profile.enforce(request.sampling, room=session.budget.tokens_left)
        return await together(_chat(mode, session, request, prefix, sampling, mint) for _ in range(request.n))
    context, known = await _context(mode, session, match)
    sampling = session.profile.enforce(request.sampling, room=_room(gateway, session, context))
    call.rendered = True
    return await together(_sample(mode, session, request, context, known, sampling, mint) for _ in range(request.n))


async def _chat(
    mode: ChatMode,
    session: Session,
    request: Request,
    prefix: Int32 | None,
    sampling: Sampling,
    mint: Callable[[], str],
) -> Answered:
    rendered = await mode.engine.chat(request.conversation, sampling, session=session.id, prefix=prefix)
    return Answered(rendered.prompt_ids, rendered.sampled, renamed(rendered.message, mint))


async def _sample(
    mode: TokensMode,
    session: Session,
    request: Request,
    context: Int32,
    known: int,
    sampling: Sampling,
    mint: Callable[[], str],
) -> Answered:
    sampled = await mode.engine.sample(context, sampling, session=session.id, known=known)
    message = mode.rendering.parse(
        context,
        sampled.token_ids,
        request.conversation.callable_tools,
        allow_calls=request.tool_choice != "none",
        mint=mint,
    )
    return Answered(context, sampled, _cut(message, sampled.stop))


def _cut(message: Message, stop: str | None) -> Message:
    """Without the stop sequence, which ends what was sampled but is not part of what was said."""
    if not stop:
        return message
    parts = list(message.parts)
    for index in reversed(range(len(parts))):
        part = parts[index]
        if isinstance(part, Text) and (at := part.text.rfind(stop)) >= 0:
            parts[index] = Text(part.text[:at])
            break
    return Message(message.role, tuple(part for part in parts if part != Text("")))


async def _context(mode: TokensMode, session: Session, match: Match) -> tuple[Int32, int]:
    """A retry reads what was read before; a continuation adds only what is new; all else is rendered whole.

    And how many of these tokens the forest has already.
    """
    forest, conversation = session.forest, match.conversation
    if match.parent is not None and match.edge is Edge.RETRY:
        context = forest.context(match.parent)
        return context, len(context)
    if match.parent is not None and match.continues:
        parent = forest[match.parent]
        tokens = forest.tokens(parent.index)
        prompt = tokens[: parent.context_length]
        added = await mode.rendering.extension(prompt, parent.sampled, match.new, conversation.tools)
        if added is not None:
            return np.concatenate((tokens, added)), len(tokens)
    return await mode.rendering.prompt(conversation), 0


def _room(gateway: Gateway, session: Session, context: Int32) -> int:
    """How many tokens may be sampled after `context`."""
    session.budget.admit_context(len(context))
    left = session.budget.tokens_left
    limit = gateway.settings.context_tokens
    room = limit - len(context)
    if room <= 0:
        message = (
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
            f"{len(context)} tokens. Please reduce the length of the messages."
        )
        raise ContextOverflowError(message, limit=limit, asked=len(context))
    return room if left is None else min(room, left)


def _generation(
    gateway: Gateway,
    response_id: str,
    request: Request,
    profile: SamplingProfile,
    answered: Answered,
    started: float,
    since: tuple[Moment, Moment],
) -> Generation:
    sampled = answered.sampled
    versions, doubtful = gateway.weights.stamp(sampled, *since)
    flags = sampling_flags(profile, gateway.mode.logprobs, constrained=_constrained(gateway, request))
    return Generation(
        context=answered.context,
        sampled=sampled.token_ids,
        logprobs=sampled.logprobs,
        message=answered.message,
        finish_reason=_finish(answered),
        versions=versions,
        flags=flags | {Flag.WEIGHTS_CHANGED} if doubtful else flags,
        response_id=response_id,
        model=request.model,
        dialect=request.dialect,
        started=started,
        ended=time.time(),
        temperature=profile.temperature,
        side=sampled.side,
    )


def _finish(answered: Answered) -> FinishReason:
    reason = answered.sampled.finish_reason
    return "tool_calls" if reason == "stop" and answered.message.tool_calls else reason


def _constrained(gateway: Gateway, request: Request) -> bool:
    """In tokens mode no engine is asked for a schema."""
    return request.sampling.schema is not None and isinstance(gateway.mode, ChatMode)


async def _record(gateway: Gateway, session: Session, match: Match, generation: Generation, call: Call) -> None:
    call.committing = True
    session.budget.tokens += len(generation.sampled)
    session.budget.read += len(generation.context)
    try:
        turn = await session.recorder.record(match, generation)
    except JournalError as error:
        raise CallError("server", f"The answer can't be stored: {error}", status=503) from error
    call.turns.append(turn)
    gateway.metrics.count_turn(turn)


async def _fail(session: Session, match: Match, request: Request, started: float, call: Call) -> None:
    """Keep a trace of a call that gave nothing."""
    call.committing = True
    generation = Generation(
        context=_NO_IDS,
        sampled=_NO_IDS,
        logprobs=_NO_LOGPROBS,
        message=Message("assistant", ()),
        finish_reason="abort",
        status=Status.FAILED,
        model=request.model,
        dialect=request.dialect,
        started=started,
        ended=time.time(),
    )
    await session.recorder.record(match, generation)


def _completion(gateway: Gateway, request: Request, answers: Sequence[Answered], call: Call) -> Completion:
    choices = tuple([Choice(one.message, _finish(one), one.sampled.stop) for one in answers])
    usage = Usage(
        prompt_tokens=len(answers[0].context),
        completion_tokens=sum(len(one.sampled.token_ids) for one in answers),
        cached_tokens=_cached(answers[0].sampled, call.turns[0]),
        reasoning_tokens=sum(_reasoning_tokens(gateway, one) for one in answers),
    )
    return Completion(call.response_id, call.created, request.model, choices, usage)


def _cached(sampled: Sampled, turn: Turn) -> int:
    """As the engine counts, else what the session's earlier calls have read or said already."""
    return turn.shared if sampled.cached is None else min(sampled.cached, turn.context_length)


def _reasoning_tokens(gateway: Gateway, answered: Answered) -> int:
    if isinstance(gateway.mode, ChatMode):
        return 0
    return gateway.mode.rendering.reasoning_tokens(answered.sampled.token_ids, answered.message)
