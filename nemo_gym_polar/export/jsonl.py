# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""Traces as JSON lines, one object per trace, and back.

`trained` lists the half-open spans of token positions with loss mask 1, `logprobs` one number per token in them; both
say in a few bytes what arrays of mostly zeros would say in many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from nemo_gym_polar.forest.digests import trace_digest
from nemo_gym_polar.forest.side import decode_side, encode_side
from nemo_gym_polar.forest.trace import Trace
from nemo_gym_polar.forest.turn import Edge
from nemo_gym_polar.tokens import Bool, VersionSpan

LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY


def write_traces(path: Path, traces: Iterable[Trace | tuple[Trace, Mapping[str, Any]]]) -> int:
    """Write all traces and return how many. A pair adds its mapping as further keys. The file appears when complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    count = 0
    with part.open("wb") as file:
        for item in traces:
            trace, extra = (item, {}) if isinstance(item, Trace) else item
            file.write(orjson.dumps({**encode_trace(trace), **extra}, option=LINE))
            count += 1
    part.replace(path)
    return count


def read_traces(path: Path) -> Iterator[Trace]:
    """The traces of a file that `write_traces` made, equal to those written; keys it does not know are passed over."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decode_trace(orjson.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number} is not a trace: {error!r}") from error


def encode_trace(trace: Trace) -> dict[str, Any]:
    """The JSON object of a trace; arrays are left to orjson."""
    return {
        "session_id": trace.session_id,
        "index": trace.index,
        "kind": trace.kind,
        "turns": trace.turns,
        "parent": trace.parent,
        "shared_prefix": trace.shared_prefix,
        "edge": trace.edge,
        "group": trace.group,
        "chain_digest": trace.chain_digest,
        "digest": trace_digest(trace),
        "finish_reason": trace.finish_reason,
        "reward": trace.reward,
        "weight": trace.weight,
        "metadata": trace.metadata,
        "versions": [[span.version, span.start, span.end] for span in trace.versions],
        "trained": spans(trace.loss_mask),
        "token_ids": np.ascontiguousarray(trace.token_ids, dtype=np.int32),
        "logprobs": np.ascontiguousarray(trace.logprobs[trace.loss_mask], dtype=np.float32),
        **({"side": encode_side(trace.side)} if trace.side else {}),
        **({"images": trace.images} if trace.images else {}),
    }


def decode_trace(row: Mapping[str, Any]) -> Trace:
    token_ids = np.array(row["token_ids"], dtype=np.int32)
    mask = np.zeros(len(token_ids), dtype=np.bool_)
    for start, end in row["trained"]:
        mask[start:end] = True
    logprobs = np.zeros(len(token_ids), dtype=np.float32)
    logprobs[mask] = np.array(row["logprobs"], dtype=np.float32)
    return Trace(
        session_id=row["session_id"],
        index=row["index"],
        kind=row["kind"],
        token_ids=token_ids,
        loss_mask=mask,
        logprobs=logprobs,
        turns=tuple(row["turns"]),
        versions=tuple(VersionSpan(*span) for span in row["versions"]),
        parent=row["parent"],
        shared_prefix=row["shared_prefix"],
        edge=Edge(row.get("edge", Edge.ROOT)),
        group=row.get("group"),
        chain_digest=row.get("chain_digest", ""),
        finish_reason=row["finish_reason"],
        reward=row["reward"],
        weight=row["weight"],
        metadata=row["metadata"],
        side=decode_side(row.get("side", {})),
        images=tuple(row.get("images", ())),
    )


def spans(mask: Bool) -> list[list[int]]:
    """The half-open runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [[int(start), int(end)] for start, end in edges.reshape(-1, 2)]
