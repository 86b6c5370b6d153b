# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""One trace against the turns that it claims: the same tokens, in the same context, with the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nemo_gym_polar.forest.findings import Breach, Finding
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import Bool, Float32, VersionSpan


def audit_trace(store: TurnStore, trace: Trace) -> Iterator[Finding]:
    """Arrays can only be compared where they have one length, and numbers where the tokens are the same."""
    if not len(trace.token_ids) == len(trace.loss_mask) == len(trace.logprobs):
        yield _found(Breach.LENGTH, trace, "has arrays of different lengths")
    elif not _is_prefix(store, trace):
        yield _found(Breach.CONTEXT, trace, _where(store, trace))
    else:
        yield from _numbers(store, trace)
        yield from _labels(store, trace)


def audit_sharing(traces: Sequence[Trace], trace: Trace, *, whole: bool) -> Iterator[Finding]:
    """Whether the trace begins as its parent does; without `whole` the parent may be missing."""
    shared = trace.shared_prefix
    parent = next((other for other in traces if other.index == trace.parent), None)
    if (trace.parent is None and shared) or (trace.parent is not None and parent is None and whole):
        yield _found(Breach.SHARING, trace, "names a parent that is not there")
    elif parent is not None and not np.array_equal(parent.token_ids[:shared], trace.token_ids[:shared]):
        yield _found(Breach.SHARING, trace, "does not begin as its parent does")


def _found(breach: Breach, trace: Trace, what: str) -> Finding:
    return Finding(breach, f"trace {trace.index} {what}", trace=trace.index)


def _is_prefix(store: TurnStore, trace: Trace) -> bool:
    """Whether the trace is the sequence of its last turn, and its other turns lie on the way there."""
    if not trace.turns or not all(0 <= index < len(store) for index in trace.turns):
        return False
    on_the_way = {turn.index for turn in store.chain(trace.turns[-1])}
    whole = store.tokens(trace.turns[-1])
    return set(trace.turns) <= on_the_way and np.array_equal(whole[: len(trace)], trace.token_ids)


def _where(store: TurnStore, trace: Trace) -> str:
    """What is wrong with a trace's tokens."""
    if not trace.turns or not all(0 <= index < len(store) for index in trace.turns):
        return f"claims the turns {list(trace.turns)}, of which not all are there"
    whole = store.tokens(trace.turns[-1])[: len(trace)]
    differs = np.flatnonzero(whole != trace.token_ids[: len(whole)])
    if len(differs):
        return f"has another token at {int(differs[0])} than turn {trace.turns[-1]} read or sampled there"
    if len(whole) < len(trace):
        return f"has {len(trace)} tokens, turn {trace.turns[-1]} only {len(whole)}"
    return "owns turns that are no proven chain"


def _numbers(store: TurnStore, trace: Trace) -> Iterator[Finding]:
    mask, logprobs, versions = _expected(store, trace)
    masked = trace.loss_mask.any()  # a trace that is masked by rule has no loss at all
    if masked and not np.array_equal(mask, trace.loss_mask):
        yield _found(Breach.MASK, trace, "has its loss on other tokens than sampled")
    elif not np.array_equal(np.where(trace.loss_mask, logprobs, 0), trace.logprobs):
        yield _found(Breach.LOGPROB, trace, "has other logprobs than recorded")
    elif not np.array_equal(np.where(trace.loss_mask, versions, ""), _named(trace.versions, len(trace))):
        yield _found(Breach.VERSION, trace, "has other versions, or versions of other tokens, than recorded")


def _expected(store: TurnStore, trace: Trace) -> tuple[Bool, Float32, NDArray[Any]]:
    mask, logprobs = np.zeros(len(trace), np.bool_), np.zeros(len(trace), np.float32)
    versions = _named((), len(trace))
    for index in trace.turns:
        turn = store[index]
        place = slice(turn.context_length, turn.length)
        mask[place] = True
        logprobs[place] = turn.logprobs[: len(logprobs[place])]
        versions[place] = _named(turn.versions, len(turn.sampled))[: len(versions[place])]
    return mask, logprobs, versions


def _named(versions: Sequence[VersionSpan], length: int) -> NDArray[Any]:
    """The version of each token, empty where none is known."""
    names = np.full(length, "", object)
    for span in versions:
        names[span.start : span.end] = span.version
    return names


def _labels(store: TurnStore, trace: Trace) -> Iterator[Finding]:
    """What a trace says about itself; a builder of one's own need not give a digest."""
    tip = store[trace.turns[-1]]
    if trace.kind != store.kind(tip):
        yield _found(Breach.LABEL, trace, f"is of kind {trace.kind}, its turns are of kind {store.kind(tip)}")
    if trace.edge not in _edges(store, trace.turns[0]):
        yield _found(Breach.LABEL, trace, f"begins with the edge {trace.edge}, which no turn on its way has")
    if trace.chain_digest and trace.chain_digest != tip.digest.hex():
        yield _found(Breach.DIGEST, trace, f"was built from other tokens than those of turn {tip.index}")


def _edges(store: TurnStore, index: int | None) -> set[Edge]:
    """All edges from a turn up to its root."""
    edges: set[Edge] = set()
    while index is not None:
        edges.add(store[index].edge)
        index = store[index].parent
    return edges
