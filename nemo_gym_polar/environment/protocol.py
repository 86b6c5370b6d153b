# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What the agent server and the resources server say to each other about one rollout.

`POST /seed_session` opens a session, `POST /finish` ends it and builds its traces, `POST /verify` makes the NeMo Gym
result. Token arrays cross once, for evaluators that read traces; the resources server keeps its own and delivers those.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.dialects.base import WhenExhausted
from nemo_gym_polar.forest.trace import Trace, TraceKind
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.rollouts.task import BuilderSpec, SessionStatus


class Open(BaseModel):
    """A session for one rollout; model calls are refused `timeout_seconds` from now on. None: as the server is set."""

    session_id: str
    model: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0)]
    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    max_turns: int | None = None
    max_generated_tokens: int | None = None
    max_context_tokens: int | None = None
    max_read_tokens: int | None = None
    max_calls: int | None = None
    when_exhausted: WhenExhausted | None = None
    metadata: dict[str, Any] = {}

    @property
    def sampling(self) -> Sampling:
        return Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_output_tokens)


class Opened(BaseModel):
    """Where the harness finds its model: `url` and `path` together, or the Unix socket and `path`."""

    session_id: str
    secret: Annotated[str, Field(repr=False)]
    path: str
    url: str
    socket: str
    model: str
    context_tokens: int
    max_tokens: int


class Finish(BaseModel):
    session_id: str
    builder: BuilderSpec = BuilderSpec()
    outcome: dict[str, Any] = {}


class WireTrace(BaseModel):
    """A trace as JSON; versions, which no evaluator reads, stay behind."""

    session_id: str
    index: int
    kind: TraceKind
    token_ids: list[int]
    loss_mask: list[bool]
    logprobs: list[float]
    turns: tuple[int, ...]
    parent: int | None
    shared_prefix: int
    edge: Edge
    chain_digest: str
    finish_reason: str

    @classmethod
    def of(cls, trace: Trace) -> Self:
        arrays = {name: getattr(trace, name).tolist() for name in ("token_ids", "loss_mask", "logprobs")}
        plain = ("session_id", "index", "kind", "turns", "finish_reason")
        names = (*plain, "parent", "shared_prefix", "edge", "chain_digest")
        return cls.model_construct(**arrays, **{name: getattr(trace, name) for name in names})

    def trace(self) -> Trace:
        arrays = {
            "token_ids": np.asarray(self.token_ids, np.int32),
            "loss_mask": np.asarray(self.loss_mask, np.bool_),
            "logprobs": np.asarray(self.logprobs, np.float32),
        }
        return Trace(**{**dict(self), **arrays})


class Finished(BaseModel):
    """The traces of a session; `turns` counts its answers, `exhausted` names the budget that ran out, if one did."""

    traces: list[WireTrace]
    dropped: dict[str, int]
    turns: int
    exhausted: str = ""


class Verify(BaseModel):
    """How the session ended, from the side of the sandbox. `masked`: nothing of it is to be trained on."""

    responses_create_params: dict[str, Any]
    session_id: str
    task_id: str
    status: SessionStatus
    reward: FiniteFloat
    masked: bool = False
    error: str | None = None
    timing: dict[str, float] = {}
    evaluation: dict[str, Any] = {}
