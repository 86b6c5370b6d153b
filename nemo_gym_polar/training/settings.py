# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of learning: credit, loss, packing, optimiser, trainer. Immutable; an unknown key is refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from nemo_gym_polar.forest.trace import TraceKind
from nemo_gym_polar.rollouts.task import SessionStatus

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]

KIND_WEIGHTS: dict[TraceKind, float] = {"main": 1.0, "sub_agent": 1.0, "compaction": 1.0, "side_call": 0.0}


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CreditSettings(Settings):
    """Who gets how much of a group's rewards.

    `trace_rewards`: `session` gives every trace its session's advantage, `trace` measures a trace that has a reward of
    its own against the group's baseline. `kind_weights` share a session among its chains. Sessions that ended in one of
    `exclude` are no part of their group, neither of its baseline nor of the gradient; nor are those without a token to
    train on, unless `baseline_of_masked` lets their reward count in the baseline.

    Ages count weight updates since a token was sampled. Tokens older than `max_token_age` are taken out of the loss;
    a group with a token older than `max_group_age` is left out whole (None: any age).
    """

    baseline: Literal["leave_one_out", "group_mean"] = "leave_one_out"
    scale: Literal["none", "group_std"] = "group_std"
    trace_rewards: Literal["session", "trace"] = "session"
    kind_weights: dict[TraceKind, NotNegative] = {}
    exclude: frozenset[SessionStatus] = frozenset({SessionStatus.CANCELLED})
    baseline_of_masked: bool = False
    max_token_age: Natural | None = None
    max_group_age: Natural | None = None

    def kind_weight(self, kind: TraceKind) -> float:
        return self.kind_weights.get(kind, KIND_WEIGHTS[kind])


class LossSettings(Settings):
    """The clipped objective. None switches a part off.

    `clip_low` and `clip_high` bound the ratio to [1 - low, 1 + high]; `dual_clip` (> 1) bounds what a token of negative
    advantage can cost; `tis_cap` truncates the importance weight of the engine's log-probabilities against the
    trainer's; `kl_weight` is the price of leaving the initial policy, `entropy_weight` the reward of staying undecided;
    `normalisation` says what has equal weight, tokens or sessions.
    """

    clip_low: NotNegative = 0.2
    clip_high: NotNegative = 0.28
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    tis_cap: Positive | None = 2.0
    kl_weight: NotNegative = 0.0
    entropy_weight: NotNegative = 0.0
    normalisation: Literal["token", "session"] = "token"


class PackingSettings(Settings):
    """`row_tokens`: several short segments share a row up to this length; `microbatch_tokens`: the rows of one forward
    pass; `max_tokens`: a segment longer than this is not trained on, and counted (None: no limit)."""

    row_tokens: Count = 384
    microbatch_tokens: Count = 8192
    max_tokens: Count | None = None


class OptimizerSettings(Settings):
    """AdamW. The rate warms up over `warmup_steps`, then stays or falls linearly to `final_fraction` of itself."""

    lr: NotNegative = 5e-4
    schedule: Literal["constant", "linear"] = "linear"
    warmup_steps: Natural = 3
    final_fraction: Annotated[float, Field(ge=0, le=1)] = 0.1
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.95
    weight_decay: NotNegative = 0.0
    max_grad_norm: Positive = 1.0


class TrainerSettings(Settings):
    """How the groups of each of `steps` become updates: in `epochs` passes, each of `minibatches` optimiser steps.

    `threads` are torch's, None leaves them alone. A checkpoint is written every `checkpoint_every` steps and at the
    end; the last `keep_checkpoints` stay.
    """

    steps: Count = 14
    epochs: Count = 3
    minibatches: Count = 1
    device: str = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    attention: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    threads: Count | None = None
    checkpoint_every: Count = 5
    keep_checkpoints: Count = 2
    credit: CreditSettings = CreditSettings()
    loss: LossSettings = LossSettings()
    packing: PackingSettings = PackingSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
