# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the gateway asks of an inference engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from nemo_gym_polar.chat import Conversation, FinishReason, Message, Sampling
from nemo_gym_polar.tokens import NO_SIDE_ARRAYS, Float32, Int32, SideArrays, VersionSpan

EngineFault = Literal[
    "unreachable",  # no connection, or it broke before the answer was whole
    "overloaded",  # the engine said 429 or 503
    "status",  # any other HTTP status that is not 200
    "malformed",  # the answer is not the JSON that this API promises
    "no_ids",  # an answer without token ids
    "no_logprobs",  # an answer without log-probabilities
    "misaligned",  # ids and log-probabilities of different lengths or of different tokens
    "not_finite",  # a log-probability that is NaN or infinite
    "aborted",  # the engine gave up on the generation
    "unsupported",  # the conversation holds what this model can't read
    "overflow",  # the context does not fit the model
]


Logprobs = Literal[
    "raw",  # of the model's distribution as it is: before temperature, penalties and cuts
    "scaled",  # after temperature and penalties, before top-p, top-k and min-p
    "processed",  # of the very distribution that was sampled from
]


class EngineError(Exception):
    """The engine failed or broke its contract. `status` is for the harness, `fault` for the counters."""

    def __init__(
        self,
        message: str,
        *,
        fault: EngineFault = "status",
        status: int = 502,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.status = status
        self.retry_after = retry_after


class ContextOverflowError(EngineError):
    """The context does not fit the model."""

    def __init__(self, message: str, *, limit: int | None = None, asked: int | None = None) -> None:
        super().__init__(message, fault="overflow", status=400)
        self.limit = limit
        self.asked = asked


@dataclass(frozen=True, slots=True)
class Sampled:
    """Tokens an engine sampled after a known context: ids and log-probabilities of equal length, end token included.

    `versions` is empty where the engine does not tell; unless `versions_by_token`, it named one for the answer as a
    whole, and knows nothing of a change in the middle. `stop` is the stop sequence that ended the answer, if one did.
    `cached` counts the context tokens that the engine had in its prefix cache, None where it does not tell. `side`
    arrays have one row for each of the last tokens of context and answer, as many as the engine tells of.
    """

    token_ids: Int32
    logprobs: Float32
    finish_reason: FinishReason
    versions: tuple[VersionSpan, ...]
    stop: str | None = None
    cached: int | None = None
    side: SideArrays = NO_SIDE_ARRAYS
    versions_by_token: bool = True


@dataclass(frozen=True, slots=True)
class Rendered:
    """A chat-mode answer: the engine's own prompt ids, what it sampled, and the message it parsed from that."""

    prompt_ids: Int32
    sampled: Sampled
    message: Message


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A copy of an engine, without the password that its URL may hold. `up` unless it failed a moment ago."""

    url: str
    up: bool
    failures: int


class TokenEngine(Protocol):
    """Takes token ids: the gateway renders and parses. `session` pins a session to one replica.

    Of the first `known` tokens of a context all is known already: an engine need not tell their side arrays again.
    """

    async def sample(self, context: Int32, sampling: Sampling, *, session: str, known: int = 0) -> Sampled: ...

    async def check(self) -> None:
        """Raises `EngineError` unless the engine answers."""

    def join(self, session: str, group: str) -> None:
        """The session begins as the others of its group do; the same replica is best for them."""

    def release(self, session: str) -> None:
        """The session has ended: its replica is free for others."""

    def replicas(self) -> Sequence[ReplicaState]:
        """Its copies, as far as calls have met them; none where it is no server."""

    async def pressure(self) -> float | None:
        """How full it is, from 0 to 1; None where it does not tell."""

    async def close(self) -> None: ...


class ScoringEngine(Protocol):
    """Says afterwards how likely tokens are, for those who want to check what was recorded."""

    async def score(self, tokens: Int32) -> Float32:
        """The log-probability of each token after those before it, at temperature 1, under the weights of now; [T].

        Nothing precedes the first token: its value is 0.
        """

    async def weight_version(self) -> str | None:
        """The weights in use, None where the engine does not tell."""

    async def close(self) -> None: ...


class ChatEngine(Protocol):
    """Takes messages: the engine renders with its own template and parses its own tool calls.

    `prefix` holds the tokens up to the last answer of `conversation` where that is proven, for engines that can keep
    them. What the engine then read is still compared with what was known.
    """

    async def chat(
        self, conversation: Conversation, sampling: Sampling, *, session: str, prefix: Int32 | None = None
    ) -> Rendered: ...

    async def count(self, conversation: Conversation, *, session: str) -> int:
        """How many tokens the prompt of `conversation` has."""

    async def check(self) -> None:
        """Raises `EngineError` unless the engine answers."""

    def join(self, session: str, group: str) -> None:
        """The session begins as the others of its group do; the same replica is best for them."""

    def release(self, session: str) -> None:
        """The session has ended: its replica is free for others."""

    def replicas(self) -> Sequence[ReplicaState]:
        """Its copies, as far as calls have met them; none where it is no server."""

    async def pressure(self) -> float | None:
        """How full it is, from 0 to 1; None where it does not tell."""

    async def close(self) -> None: ...
