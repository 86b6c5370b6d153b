# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A trace: one chain of the forest made ready for training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import NO_SIDE_ARRAYS, Bool, Float32, Int32, SideArrays, VersionSpan

TraceKind = Literal["main", "sub_agent", "compaction", "side_call"]


@dataclass(slots=True)
class Trace:
    """Token ids, loss mask and behaviour log-probabilities of one chain, all of length T.

    `loss_mask` is True exactly on tokens that the policy sampled and that this trace owns; `logprobs` is 0.0 elsewhere.
    `turns` are the forest indices of the owned turns, `versions` cover the masked tokens only. The first
    `shared_prefix` tokens are those of trace `parent`; `edge` says why this one parts from it there, or begins at all.
    `group` names the task whose sessions are compared, None until a rollout says. `reward` is None until an evaluator
    has spoken; `weight` is this trace's share of its session. `chain_digest` is the last owned turn's, in hex: it
    chains the tokens of all turns before it, and so ties the trace to its journal. `side` arrays have T rows, of which
    those of -1 are unknown; `images` are the content hashes of the conversation's images in the order of reading.
    """

    session_id: str
    index: int
    kind: TraceKind
    token_ids: Int32
    loss_mask: Bool
    logprobs: Float32
    turns: tuple[int, ...]
    versions: tuple[VersionSpan, ...] = ()
    parent: int | None = None
    shared_prefix: int = 0
    edge: Edge = Edge.ROOT
    group: str | None = None
    chain_digest: str = ""
    finish_reason: str = "stop"
    reward: float | None = None
    weight: float = 1.0
    metadata: dict[str, Any] = field(default_factory=dict)
    side: SideArrays = NO_SIDE_ARRAYS
    images: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def trained_tokens(self) -> int:
        return int(self.loss_mask.sum())
