# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set about a gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.chat import Sampling
from nemo_gym_polar.dialects.base import WhenExhausted

Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class SamplingProfile(BaseModel):
    """The values that training samples with; what a harness asks for is replaced by them.

    `max_tokens` bounds one answer; a harness may ask for less. `seed` makes evaluations repeatable where the engine
    heeds it; training has none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: int = -1
    max_tokens: Positive | None = None
    seed: Annotated[int, Field(ge=0)] | None = None

    def enforce(self, asked: Sampling, *, room: int | None) -> Sampling:
        """The harness keeps its stop sequences and schema and may shorten the answer to what it asks for.

        `room` is what context and budget leave.
        """
        limits = [limit for limit in (asked.max_tokens, self.max_tokens, room) if limit is not None]
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            max_tokens=min(limits, default=None),
            stop=asked.stop,
            seed=self.seed,
            schema=asked.schema,
        )


class GatewaySettings(BaseModel):
    """Limits and habits of a gateway; sizes in bytes, times in seconds.

    `journals` is the directory of the sessions' journals, `commit_window` how long a commit waits for company.
    `context_tokens` is what the model can read, answer included. `models` are the names that `/v1/models` lists; any
    other name is answered too. A session that calls more often than `max_calls_per_minute` is told to wait.
    `header_grace` is how long an engine may fail with a proper status before a stream's headers are sent.
    `when_exhausted` is what a harness is told once its session's budget has run out: the provider's error, or a last
    answer. `while_paused` is what becomes of calls while the weights are replaced: they wait, or are told to come again
    in `retry_after` seconds. With less than `min_free_bytes` on the journals' disk a gateway says that it is not ready.
    `tracing` sends spans by OTLP; it needs the extra `otel`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    journals: Path
    sampling: SamplingProfile = SamplingProfile()
    context_tokens: Positive = 32768
    models: tuple[str, ...] = ("polar-policy",)
    max_body_bytes: Positive = 64 * 1024 * 1024
    max_header_bytes: Positive = 64 * 1024
    max_calls_per_minute: Positive | None = None
    max_calls: Positive = 4096
    max_calls_per_session: Positive = 16
    when_exhausted: WhenExhausted = "error"
    tracing: bool = False
    while_paused: Literal["wait", "refuse"] = "wait"
    header_grace: Seconds = 1.0
    keep_alive: Seconds = 15.0
    retry_after: Seconds = 1.0
    min_free_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    commit_window: Annotated[float, Field(ge=0)] = 0.0
