# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""All traces of a session in one object, for trainers that take several sequences per rollout.

Invariant: every sampled span has at most one owner, which is the trace that has the loss on it; where a span stands in
other traces, as context, it says `owned: false`. A build that breaks this is refused. Upstream has not settled the
names of such an envelope, so each key can be renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nemo_gym_polar.forest.builders import Build
from nemo_gym_polar.forest.side import decode_side, encode_side
from nemo_gym_polar.forest.store import TurnStore
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge, Turn
from nemo_gym_polar.tokens import VersionSpan

SCHEMA = "nemo_gym_polar.training_traces/1"
ENVELOPE = ("schema", "rollout_id", "task_id", "sample", "status", "reward", "training_traces", "dropped_tokens")
TRACE = (
    *("trace_id", "kind", "edge", "parent_trace_id", "shared_prefix_length", "group", "chain_digest"),
    *("finish_reason", "trace_reward", "weight", "token_ids", "loss_mask", "logprobs"),
    *("sampled_spans", "weight_versions", "turns", "metadata", "side_arrays", "images"),
)
SPAN = ("call_index", "response_id", "start", "end", "owned")
VERSION = ("version", "start", "end")
LEVELS = (ENVELOPE, TRACE, SPAN, VERSION)
KEYS = tuple(dict.fromkeys(key for level in LEVELS for key in level))

Renames = Mapping[str, str]


class EnvelopeError(ValueError):
    """Names that don't work, or a build whose spans have not exactly one owner."""


def check_renames(renames: Renames) -> Renames:
    """Raises `EnvelopeError` for a key that no envelope has, or two keys of one object with one name."""
    if unknown := sorted(renames.keys() - set(KEYS)):
        raise EnvelopeError(f"an envelope has no key {unknown[0]!r}; known are {', '.join(KEYS)}")
    for level in LEVELS:
        names = [renames.get(key, key) for key in level]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise EnvelopeError(f"two keys of one object would be named {twice!r}; give each another name")
    return renames


def encode_envelope(
    store: TurnStore, made: Build, about: Mapping[str, Any], renames: Renames | None = None
) -> dict[str, Any]:
    """The JSON object of a session, its arrays left to orjson; `about` gives `task_id`, `sample`, `status`, `reward`.

    Token positions are within their trace, spans are half-open.
    """
    names = check_renames(renames or {})
    _check_owners(made.traces)
    traces = [_named(TRACE, _trace(store, trace), names) for trace in made.traces]
    values = {"schema": SCHEMA, "rollout_id": store.session_id, "training_traces": traces, **about}
    values["dropped_tokens"] = dict(made.dropped)
    for trace in traces:
        spans, versions = names.get("sampled_spans", "sampled_spans"), names.get("weight_versions", "weight_versions")
        trace[spans] = [_named(SPAN, span, names) for span in trace[spans]]
        trace[versions] = [_named(VERSION, span, names) for span in trace[versions]]
    return _named(ENVELOPE, values, names)


def decode_envelope(row: Mapping[str, Any], renames: Renames | None = None) -> list[Trace]:
    """The traces of an envelope, equal to those that were put into it."""
    names = check_renames(renames or {})
    whole = _plain(ENVELOPE, row, names)
    if whole["schema"] != SCHEMA:
        raise EnvelopeError(f"not an envelope: its schema is {whole['schema']!r}, expected {SCHEMA!r}")
    return [_read(whole["rollout_id"], _plain(TRACE, trace, names), names) for trace in whole["training_traces"]]


def _trace(store: TurnStore, trace: Trace) -> dict[str, Any]:
    spans = list(_spans(store, trace))
    _check_mask(trace, spans)
    return {
        "trace_id": trace.index,
        "kind": trace.kind,
        "edge": str(trace.edge),
        "group": trace.group,
        "chain_digest": trace.chain_digest,
        "parent_trace_id": trace.parent,
        "shared_prefix_length": trace.shared_prefix,
        "finish_reason": trace.finish_reason,
        "trace_reward": trace.reward,
        "weight": trace.weight,
        "token_ids": trace.token_ids,
        "loss_mask": trace.loss_mask.astype(np.int8),
        "logprobs": trace.logprobs,
        "sampled_spans": spans,
        "weight_versions": [{"version": one.version, "start": one.start, "end": one.end} for one in trace.versions],
        "turns": list(trace.turns),
        "metadata": trace.metadata,
        "side_arrays": encode_side(trace.side),
        "images": list(trace.images),
    }


def _spans(store: TurnStore, trace: Trace) -> Iterator[dict[str, Any]]:
    """What the model said on the way to the trace's end, as far as the trace reaches."""
    masked = not trace.loss_mask.any()
    for turn in store.chain(trace.turns[-1]) if trace.turns else ():
        if turn.context_length < min(turn.length, len(trace)):
            yield _span(turn, len(trace), owned=turn.index in trace.turns and not masked)


def _span(turn: Turn, limit: int, *, owned: bool) -> dict[str, Any]:
    return {
        "call_index": turn.index,
        "response_id": turn.response_id,
        "start": turn.context_length,
        "end": min(turn.length, limit),
        "owned": owned,
    }


def _check_owners(traces: Sequence[Trace]) -> None:
    owners: dict[int, int] = {}
    for trace in traces:
        for turn in trace.turns:
            if owners.setdefault(turn, trace.index) != trace.index:
                raise EnvelopeError(
                    f"session {trace.session_id}: traces {owners[turn]} and {trace.index} both own turn {turn}; "
                    "a builder must give every turn to one trace"
                )


def _check_mask(trace: Trace, spans: Sequence[Mapping[str, Any]]) -> None:
    expected = np.zeros(len(trace), np.bool_)
    for span in spans:
        expected[span["start"] : span["end"]] |= span["owned"]
    if not np.array_equal(expected, trace.loss_mask):
        where = int(np.flatnonzero(expected != trace.loss_mask)[0])
        raise EnvelopeError(
            f"session {trace.session_id}: trace {trace.index} has loss mask {int(trace.loss_mask[where])} on token "
            f"{where}, which its turns don't bear out; see `polar audit`"
        )


def _named(level: Sequence[str], values: Mapping[str, Any], names: Renames) -> dict[str, Any]:
    return {names.get(key, key): values.get(key) for key in level}


def _plain(level: Sequence[str], row: Mapping[str, Any], names: Renames) -> dict[str, Any]:
    try:
        return {key: row[names.get(key, key)] for key in level}
    except KeyError as error:
        raise EnvelopeError(f"the envelope has no key {error.args[0]!r}; was it written with other names?") from error


def _read(session_id: str, row: Mapping[str, Any], names: Renames) -> Trace:
    versions = [_plain(VERSION, span, names) for span in row["weight_versions"]]
    return Trace(
        session_id=session_id,
        index=row["trace_id"],
        kind=row["kind"],
        token_ids=np.array(row["token_ids"], np.int32),
        loss_mask=np.array(row["loss_mask"], np.bool_),
        logprobs=np.array(row["logprobs"], np.float32),
        turns=tuple(row["turns"]),
        versions=tuple(VersionSpan(**span) for span in versions),
        parent=row["parent_trace_id"],
        shared_prefix=row["shared_prefix_length"],
        edge=Edge(row["edge"]),
        group=row["group"],
        chain_digest=row["chain_digest"],
        finish_reason=row["finish_reason"],
        reward=row["trace_reward"],
        weight=row["weight"],
        metadata=row["metadata"],
        side=decode_side(row["side_arrays"]),
        images=tuple(row["images"]),
    )
