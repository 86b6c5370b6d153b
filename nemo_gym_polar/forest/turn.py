# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A turn: one model call, a node of the forest.

A turn stores only what is new: its context is the first `shared` tokens of its parent's sequence (context and sampled
tokens) followed by `delta`. So a retry costs nothing, and a chain that breaks in the middle costs only its new tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nemo_gym_polar.chat import Dialect, FinishReason, Message
from nemo_gym_polar.tokens import NO_SIDE_ARRAYS, Float32, Int32, SideArrays, VersionSpan


class Edge(StrEnum):
    """Why a turn follows another."""

    ROOT = "root"
    """Begins a chain. With a parent: the conversation goes on, but not from the same tokens; `cause` says why."""
    CONTINUE = "continue"
    """Its context begins with every token of its parent, proven token by token."""
    RETRY = "retry"
    """Asks again what its parent was asked; a sibling, not a child, as far as tokens go."""
    SUB_AGENT = "sub_agent"
    """Begins another agent's conversation, started by its parent."""
    COMPACTION = "compaction"
    """Writes the summary of a history that grew too long, or begins the conversation that starts from one."""
    SIDE_CALL = "side_call"
    """A call beside the task: a title, a quota probe, a search."""


class Status(StrEnum):
    """What became of an answer."""

    KEPT = "kept"
    """The harness has it: a later request repeats it, or it was delivered and nothing says otherwise."""
    UNSEEN = "unseen"
    """Sampled to its end, but the harness left before it came, or asked again and went on from another answer."""
    PARTIAL = "partial"
    """Generation was cut short, so the harness can't have the whole answer."""
    FAILED = "failed"
    """Nothing to train on: the engine failed, sent no ids, or the answer could not be made durable."""


class Cause(StrEnum):
    """Why a conversation that goes on from a turn does not go on from its tokens."""

    THINKING_STRIPPED = "thinking_stripped"
    ARGUMENTS_CHANGED = "arguments_changed"
    SYSTEM_CHANGED = "system_changed"
    TOOLS_CHANGED = "tools_changed"
    HISTORY_REWRITTEN = "history_rewritten"
    ANSWER_DROPPED = "answer_dropped"
    """The history goes on from the parent's question as if it had not been answered."""
    TOKEN_BOUNDARY = "token_boundary"
    """Same text, other tokens: the engine re-tokenised it differently from what was sampled."""
    TOKENS_MISSING = "tokens_missing"
    """The parent's tokens are unknown."""


class Flag(StrEnum):
    """Why a turn's log-probabilities are not the policy's own; such turns are context, never loss."""

    NOT_POLICY = "not_policy"
    """Another model answered."""
    CONSTRAINED = "constrained"
    """A grammar or a forced tool choice masked the distribution."""
    TEMPERATURE = "temperature"
    """Sampled at one temperature, reported at another."""
    TRUNCATED = "truncated"
    """top-p, top-k or min-p cut the distribution."""
    PENALTIES = "penalties"
    """Repetition, presence or frequency penalties, or a logit bias."""
    WEIGHTS_CHANGED = "weights_changed"
    """The weights were replaced while it was sampled, and the engine does not say at which token."""
    EXHAUSTED = "exhausted"
    """Not sampled at all: the session's budget had run out, and the gateway said so in an answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """What an engine did for one call, as the forest takes it.

    `context` [C] and `sampled` [S] are int32 ids, `logprobs` [S] float32 natural logarithms. `versions` cover [0, S),
    or are empty where the engine doesn't tell. `side` arrays (routed experts) have one row for each of the last tokens
    of context and sampled together, at most C + S; the forest keeps the rows of new tokens, and a row of -1 for a new
    token that has none. Times are Unix seconds,
    `temperature` is what was sampled at.
    """

    context: Int32
    sampled: Int32
    logprobs: Float32
    message: Message
    finish_reason: FinishReason = "stop"
    versions: tuple[VersionSpan, ...] = ()
    status: Status = Status.KEPT
    flags: frozenset[Flag] = frozenset()
    response_id: str = ""
    model: str = ""
    dialect: Dialect = "chat"
    started: float = 0.0
    ended: float = 0.0
    temperature: float = 1.0
    side: SideArrays = NO_SIDE_ARRAYS


@dataclass(slots=True, eq=False)
class Turn:
    """One model call. `delta` [D] and `sampled` [S] are int32, `logprobs` [S] float32; context length is shared + D.

    `digest` chains the tokens of all turns up to this one; `request` names the message node that was asked, `answer`
    the one that was answered. `drift` is a harmless change in how the harness repeated the parent's answer.
    """

    index: int
    parent: int | None
    edge: Edge
    shared: int
    delta: Int32
    sampled: Int32
    logprobs: Float32
    digest: bytes
    request: int
    answer: int | None
    cause: Cause | None = None
    drift: Cause | None = None
    status: Status = Status.KEPT
    continued: bool = False
    finish_reason: FinishReason = "stop"
    versions: tuple[VersionSpan, ...] = ()
    flags: frozenset[Flag] = frozenset()
    response_id: str = ""
    model: str = ""
    dialect: Dialect = "chat"
    started: float = 0.0
    ended: float = 0.0
    temperature: float = 1.0
    side: SideArrays = NO_SIDE_ARRAYS

    @property
    def has_tokens(self) -> bool:
        """False where the engine gave none: `delta` is then empty for want of knowledge."""
        return self.status is not Status.FAILED

    @property
    def context_length(self) -> int:
        return self.shared + len(self.delta)

    @property
    def length(self) -> int:
        """Tokens of context and answer together."""
        return self.shared + len(self.delta) + len(self.sampled)


@dataclass(frozen=True, slots=True)
class Mark:
    """A later finding about a turn; None leaves a field as it is."""

    turn: int
    status: Status | None = None
    edge: Edge | None = None
    continued: bool | None = None
