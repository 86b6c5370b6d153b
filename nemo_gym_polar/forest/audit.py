# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Do traces say what the forest says? An independent check that shares no code with the builders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from nemo_gym_polar.forest.digests import turn_digest
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge, Status
from nemo_gym_polar.tokens import Bool


class Breach(StrEnum):
    """What an audit can find."""

    DIGEST = "digest"
    """Stored tokens or log-probabilities are not what was digested."""
    STRUCTURE = "structure"
    """A turn hangs where its edge says it can't."""
    LENGTH = "length"
    """Arrays of one trace differ in length."""
    CONTEXT = "context"
    """A trace's tokens are not those of the turns that it claims."""
    MASK = "mask"
    """The loss is on a token that no owned turn sampled, or misses part of one."""
    LOGPROB = "logprob"
    """A log-probability differs from the recorded one."""
    VERSION = "version"
    """Version spans don't cover exactly the tokens in the loss."""
    OWNER = "owner"
    """A turn is owned twice, or owned though its answer was not kept."""
    SHARING = "sharing"
    """A trace does not begin with its parent's tokens as it says."""
    ACCOUNT = "account"
    """Sampled tokens are neither trained on nor counted as dropped."""


@dataclass(frozen=True, slots=True)
class Finding:
    breach: Breach
    message: str
    turn: int | None = None
    trace: int | None = None


def audit(store: TurnStore, traces: Sequence[Trace], dropped: Mapping[str, int]) -> list[Finding]:
    """All breaches in a build of `store`; empty for a sound one. `dropped` counts sampled tokens by cause."""
    findings = [*audit_turns(store), *_owners(store, traces), *_account(store, traces, dropped)]
    for trace in traces:
        findings += _trace(store, trace)
        findings += _sharing(traces, trace)
    return findings


def audit_turns(store: TurnStore) -> Iterator[Finding]:
    """Breaches in the turns themselves."""
    for turn in store.turns:
        above = store[turn.parent] if turn.parent is not None and turn.parent < turn.index else None
        if (above is None) != (turn.parent is None) or turn.shared > (above.length if above else 0):
            yield Finding(Breach.STRUCTURE, f"turn {turn.index} shares more with its parent than there is", turn.index)
        if turn.edge is Edge.CONTINUE and turn.has_tokens and (above is None or turn.shared != above.length):
            yield Finding(Breach.STRUCTURE, f"turn {turn.index} continues only part of its parent", turn.index)
        if (
            turn_digest(above.digest if above else b"", turn.shared, turn.delta, turn.sampled, turn.logprobs)
            != turn.digest
        ):
            yield Finding(Breach.DIGEST, f"turn {turn.index} does not have the tokens that were recorded", turn.index)


def _owners(store: TurnStore, traces: Sequence[Trace]) -> Iterator[Finding]:
    owners = Counter(index for trace in traces for index in trace.turns)
    for index, times in owners.items():
        if times > 1:
            yield Finding(Breach.OWNER, f"turn {index} is owned by {times} traces", index)
        if store[index].status is not Status.KEPT or store[index].flags:
            yield Finding(Breach.OWNER, f"turn {index} is {store[index].status}, yet owned", index)


def _account(store: TurnStore, traces: Iterable[Trace], dropped: Mapping[str, int]) -> Iterator[Finding]:
    sampled = sum(len(turn.sampled) for turn in store.turns)
    trained, left_out = sum(trace.trained_tokens for trace in traces), sum(dropped.values())
    if trained + left_out != sampled:
        yield Finding(Breach.ACCOUNT, f"{sampled} sampled, but {trained} trained on and {left_out} dropped")


def _trace(store: TurnStore, trace: Trace) -> Iterator[Finding]:
    """Breaches in one trace against the turns that it claims."""
    if not len(trace.token_ids) == len(trace.loss_mask) == len(trace.logprobs):
        yield Finding(Breach.LENGTH, f"trace {trace.index} has arrays of different lengths", trace=trace.index)
        return
    if not trace.turns or not _is_prefix(store, trace):
        yield Finding(Breach.CONTEXT, f"trace {trace.index} is not the sequence of its turns", trace=trace.index)
        return
    mask, logprobs = _expected(store, trace)
    masked = trace.loss_mask.any()  # a trace that is masked by rule has no loss at all
    if masked and not np.array_equal(mask, trace.loss_mask):
        yield Finding(Breach.MASK, f"trace {trace.index} has its loss on other tokens than sampled", trace=trace.index)
    elif not np.array_equal(np.where(trace.loss_mask, logprobs, 0), trace.logprobs):
        yield Finding(Breach.LOGPROB, f"trace {trace.index} has other logprobs than recorded", trace=trace.index)
    if trace.versions and not np.array_equal(_covered(trace), trace.loss_mask):
        yield Finding(Breach.VERSION, f"trace {trace.index} has versions for other tokens", trace=trace.index)


def _is_prefix(store: TurnStore, trace: Trace) -> bool:
    """Whether the trace is the sequence of its last turn, and its other turns lie on the way there."""
    on_the_way = {turn.index for turn in store.chain(trace.turns[-1])}
    whole = store.tokens(trace.turns[-1])
    return set(trace.turns) <= on_the_way and np.array_equal(whole[: len(trace)], trace.token_ids)


def _expected(store: TurnStore, trace: Trace) -> tuple[Bool, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    mask, logprobs = np.zeros(len(trace), np.bool_), np.zeros(len(trace), np.float32)
    for index in trace.turns:
        turn = store[index]
        place = slice(turn.context_length, turn.length)
        mask[place] = True
        logprobs[place] = turn.logprobs[: len(logprobs[place])]
    return mask, logprobs


def _covered(trace: Trace) -> Bool:
    covered = np.zeros(len(trace), np.bool_)
    for span in trace.versions:
        covered[span.start : span.end] = True
    return covered


def _sharing(traces: Sequence[Trace], trace: Trace) -> Iterator[Finding]:
    shared = trace.shared_prefix
    parents = [other for other in traces if other.index == trace.parent]
    if (trace.parent is None and shared) or (trace.parent is not None and not parents):
        yield Finding(Breach.SHARING, f"trace {trace.index} names a parent that is not there", trace=trace.index)
    elif parents and not np.array_equal(parents[0].token_ids[:shared], trace.token_ids[:shared]):
        yield Finding(Breach.SHARING, f"trace {trace.index} does not begin as its parent does", trace=trace.index)
