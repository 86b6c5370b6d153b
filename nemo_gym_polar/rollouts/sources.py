# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Where sessions come from and their tokens go: a gateway in this process, or one behind somebody else's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.forest.builders import build
from nemo_gym_polar.forest.forest import Forest
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.gateway import Gateway, Server, Session
from nemo_gym_polar.rollouts.conversations import conversations
from nemo_gym_polar.rollouts.first_prompt import FirstPrompt, first_prompt
from nemo_gym_polar.rollouts.settings import RolloutSettings
from nemo_gym_polar.rollouts.task import BuilderSpec, TaskRequest, sampling_seed
from nemo_gym_polar.runtimes.registry import GatewayAddress


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that a harness can call: the base URL is the address's plus `path`, the API key is `secret`."""

    id: str
    secret: str = field(repr=False)
    path: str
    address: GatewayAddress
    model: str
    context_tokens: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Collected:
    """What a finished session left. `turns` counts answers; `exhausted` names the budget that ran out, if one did;
    `conversations` has an entry for each trace, or none."""

    traces: Sequence[Trace]
    dropped: Mapping[str, int]
    turns: int
    first_prompt: FirstPrompt | None = None
    exhausted: str = ""
    conversations: Sequence[Mapping[str, Any]] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


class SessionSource(Protocol):
    """Opens a session for one sample of a task, and ends it. `deadline` is in seconds of `time.monotonic()`."""

    async def open(self, request: TaskRequest, sample: int, deadline: float) -> OpenSession: ...

    async def finish(self, session_id: str, builder: BuilderSpec, outcome: Mapping[str, Any]) -> Collected: ...


class GatewaySessions:
    """Sessions of a gateway in this process."""

    def __init__(self, gateway: Gateway, server: Server, settings: RolloutSettings) -> None:
        self.gateway = gateway
        self.address = GatewayAddress(server.url, server.uds)
        self.settings = settings

    async def open(
        self, request: TaskRequest, sample: int, deadline: float, session_id: str | None = None
    ) -> OpenSession:
        seed = sampling_seed(request.metadata, sample)
        session = await self.gateway.open(
            session_id,
            model=request.agent.model_name,
            deadline=deadline,
            max_turns=self.settings.max_turns,
            max_tokens=self.settings.max_generated_tokens,
            max_context_tokens=self.settings.max_context_tokens,
            max_read_tokens=self.settings.max_read_tokens,
            max_calls=self.settings.max_calls,
            when_exhausted=self.settings.when_exhausted,
            sampling=None if seed is None else Sampling(seed=seed),
            metadata={"task_id": request.task_id, "sample": sample, **request.metadata},
            group=request.task_id,
        )
        context = self.gateway.settings.context_tokens
        answer = session.profile.max_tokens or context
        return OpenSession(session.id, session.secret, session.path, self.address, session.model, context, answer)

    async def finish(self, session_id: str, builder: BuilderSpec, outcome: Mapping[str, Any]) -> Collected:
        exhausted = exhausted_budget(self.gateway.session(session_id))
        forest = await self.gateway.finish(session_id, outcome)
        built = build(forest, builder.strategy, builder.config)
        said = conversations(forest, built.traces) if self.settings.keep_messages else ()
        return Collected(built.traces, built.dropped, answers(forest), first_prompt(forest), exhausted, said)


@dataclass(frozen=True, slots=True)
class NamedSession:
    """One session of a gateway, under an id that somebody else has chosen."""

    sessions: GatewaySessions
    session_id: str

    async def open(self, request: TaskRequest, sample: int, deadline: float) -> OpenSession:
        return await self.sessions.open(request, sample, deadline, self.session_id)

    async def finish(self, session_id: str, builder: BuilderSpec, outcome: Mapping[str, Any]) -> Collected:
        return await self.sessions.finish(session_id, builder, outcome)


def answers(forest: Forest) -> int:
    return sum(turn.has_tokens for turn in forest.turns)


def exhausted_budget(session: Session) -> str:
    exhausted = session.budget.exhausted
    return exhausted.short if exhausted is not None else ""
