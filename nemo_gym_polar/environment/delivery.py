# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Which chain of a session NeMo RL gets, and what is left behind.

A NeMo Gym result holds one chain, and NeMo RL groups rollouts by the tokens of their first prompt. So the chain to
deliver is the main one that holds the session's first prompt, even where a later one is longer: another first prompt
would make the rollout a group of its own, with advantage zero. Every trained token left behind is counted by kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from nemo_gym_polar.forest.trace import Trace, TraceKind


@dataclass(frozen=True, slots=True)
class Delivery:
    """`trace` is None when no trace holds a sampled token; `usable` says that it may be trained on.

    `undelivered` are the trained tokens of all other traces by kind, with every kind present.
    """

    trace: Trace | None
    usable: bool = False
    undelivered: dict[TraceKind, int] = field(default_factory=dict)


def choose(traces: Sequence[Trace]) -> Delivery:
    candidates = [trace for trace in traces if trace.trained_tokens and not trace.loss_mask[0]]
    chosen = min(candidates, key=_preference, default=None)
    undelivered: dict[TraceKind, int] = dict.fromkeys(get_args(TraceKind), 0)
    for trace in traces:
        if trace is not chosen:
            undelivered[trace.kind] += trace.trained_tokens
    return Delivery(chosen, chosen is not None and chosen.kind == "main", undelivered)


def _preference(trace: Trace) -> tuple[bool, int, int]:
    return trace.kind != "main", min(trace.turns, default=0), trace.index
