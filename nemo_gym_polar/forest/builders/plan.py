# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""From planned chains to traces, the steps that all builders share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nemo_gym_polar.forest.builders.base import Build, Options, Rule
from nemo_gym_polar.forest.side import chain_rows, image_digests
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge, Flag, Status, Turn
from nemo_gym_polar.tokens import VersionSpan

_MOST_TELLING = (
    (Edge.SUB_AGENT, Edge.COMPACTION, Edge.SIDE_CALL),
    (Edge.ROOT,),
    (Edge.RETRY,),
    (Edge.CONTINUE,),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A trace to be: the tokens of `tip`, with the loss on those of the `owned` turns, which lie on its chain."""

    tip: Turn
    owned: tuple[Turn, ...]

    @property
    def sampled_tokens(self) -> int:
        return sum(len(turn.sampled) for turn in self.owned)


def why_not(turn: Turn) -> str | None:
    """Why a turn's sampled tokens must not be trained on, if so."""
    if turn.status is not Status.KEPT:
        return str(turn.status)
    return next((str(flag) for flag in Flag if flag in turn.flags), None) if turn.flags else None


def realise(store: TurnStore, plans: Iterable[Plan], options: Options, dropped: Counter[str]) -> Build:
    """Traces of the plans under the kind rules and the length limit. Tokens left out are added to `dropped`."""
    build = Build(dropped=dropped)
    for turn in store.turns:
        if (cause := why_not(turn)) is not None and len(turn.sampled):
            dropped[cause] += len(turn.sampled)
    owners: dict[int, int] = {}
    for plan in plans:
        trace = _trace(store, plan, len(build.traces), owners, options, dropped)
        if trace is not None:
            owners.update((turn.index, trace.index) for turn in plan.owned)
            build.traces.append(trace)
    return build


def _trace(
    store: TurnStore, plan: Plan, index: int, owners: dict[int, int], options: Options, dropped: Counter[str]
) -> Trace | None:
    kind = store.kind(plan.tip)
    rule = options.rule(kind)
    if rule is not Rule.TRAIN:
        dropped[kind] += plan.sampled_tokens
    if rule is Rule.DROP:
        return None
    tokens = store.tokens(plan.tip.index)[: options.max_tokens]
    parent, shared, edge = _parent(store, plan, owners)
    trace = Trace(
        session_id=store.session_id,
        index=index,
        kind=kind,
        token_ids=tokens,
        loss_mask=np.zeros(len(tokens), np.bool_),
        logprobs=np.zeros(len(tokens), np.float32),
        turns=tuple(turn.index for turn in plan.owned),
        parent=parent,
        shared_prefix=min(shared, len(tokens)),
        edge=edge,
        chain_digest=plan.owned[-1].digest.hex(),
        finish_reason=plan.tip.finish_reason if len(tokens) == plan.tip.length else "length",
        side=chain_rows(store, plan.tip, len(tokens)),
        images=image_digests(store.conversation(plan.tip).messages),
    )
    return trace if rule is Rule.MASK or _put_loss(trace, plan, dropped) else None


def _put_loss(trace: Trace, plan: Plan, dropped: Counter[str]) -> int:
    """Mask in what the owned turns sampled, as far as the trace reaches; how many tokens that is."""
    versions: list[VersionSpan] = []
    trained = 0
    for turn in plan.owned:
        start, kept = turn.context_length, max(0, min(turn.length, len(trace)) - turn.context_length)
        trace.loss_mask[start : start + kept] = True
        trace.logprobs[start : start + kept] = turn.logprobs[:kept]
        versions += _spans(turn, kept)
        trained += kept
    trace.versions = tuple(versions)
    if cut := plan.sampled_tokens - trained:
        dropped["max_tokens"] += cut
    return trained


def _spans(turn: Turn, kept: int) -> Iterable[VersionSpan]:
    """The version spans of a turn's first `kept` tokens, at their places in the trace."""
    at = turn.context_length
    return [
        VersionSpan(span.version, at + span.start, at + min(span.end, kept))
        for span in turn.versions
        if span.start < min(span.end, kept)
    ]


def _parent(store: TurnStore, plan: Plan, owners: dict[int, int]) -> tuple[int | None, int, Edge]:
    """The trace that this one branches from, how many leading tokens the two share, and the edge between them."""
    turn = plan.owned[0]
    shared, way = turn.shared, [turn.edge]
    while turn.parent is not None:
        turn = store[turn.parent]
        if turn.index in owners:
            return owners[turn.index], shared, _telling(way)
        shared = min(shared, turn.shared)
        way.append(turn.edge)
    return None, 0, _telling(way)


def _telling(way: list[Edge]) -> Edge:
    """The edge nearest to a trace's first turn that says most; turns that nobody owns may lie between two traces."""
    return next(edge for likewise in _MOST_TELLING for edge in way if edge in likewise)
